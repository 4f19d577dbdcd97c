"""Every headline statistic of a report has its interval, or says why not."""

from __future__ import annotations

import numpy as np
import pytest

from loadstone.histogram import Histogram
from loadstone.metrics import Number, Samples, all_metrics
from loadstone.metrics._evenly import evenly, in_parts
from loadstone.summary.intervals import STATS, of_number, of_samples
from loadstone.summary.measure import measure


@pytest.fixture
def run(tables, answer):
    """120 requests, one every 10 ms, of about 20 ms each; every tenth one failed."""
    random = np.random.default_rng(1)

    def one(number):
        sent = 10.0 * number
        took = 15 + 10 * random.random()
        outcome = "http-error" if number % 10 == 9 else "ok-length"
        return answer(sent + took / 2, sent + took, sent=sent, tokens=2, outcome=outcome)

    return tables(*(one(number) for number in range(120)), goodput={"request_latency": 24.0})


def found(name, tables):
    return measure(all_metrics()[name], tables)


def test_a_distribution_of_requests_has_them(run):
    result = found("request_latency", run)
    assert set(result.intervals) == {"mean", *STATS}
    for stat in ("mean", "p50", "p90"):
        interval = result.intervals[stat]
        assert interval.low <= getattr(result, stat) <= interval.high
        assert interval.level == 0.95
    assert result.intervals["p99"].low is None
    assert result.intervals["p99"].needs == 368


@pytest.mark.parametrize(
    "name", ["request_throughput", "output_token_throughput", "goodput", "token_goodput"]
)
def test_a_rate_has_one(run, name):
    result = found(name, run)
    interval = result.intervals["mean"]
    assert (interval.method, interval.effective) == ("batch means", None)
    assert interval.low < result.mean < interval.high


@pytest.mark.parametrize(("name", "percent"), [("error_rate", 10.0), ("goodput_attainment", None)])
def test_a_share_has_wilsons(run, name, percent):
    result = found(name, run)
    interval = result.intervals["mean"]
    assert interval.method == "Wilson"
    assert 0 < interval.low < result.mean < interval.high < 100
    assert percent is None or result.mean == percent


def test_counts_and_levels_over_time_have_none(run):
    assert found("request_count", run).intervals == {}
    assert found("concurrency", run).intervals == {}


def test_a_small_part_says_what_it_takes(run):
    few = run.only(np.arange(len(run.requests)) < 10)
    assert found("request_latency", few).intervals["p50"].reason == (
        "there are 9 samples, and an interval takes 20."
    )
    assert found("request_throughput", few).intervals["mean"].needs == 80


def test_samples_come_in_the_order_of_sending(tables, answer):
    run = tables(answer(50, sent=30), answer(5, sent=0), answer(12, sent=2))
    samples = all_metrics()["request_latency"].result(run)
    assert samples.in_order
    assert samples.values.tolist() == [5.0, 10.0, 20.0]


def test_one_that_was_never_sent_stands_where_it_was_due(tables, answer):
    unsent = answer(sent=None, due=1.0, outcome="not-sent")
    assert tables(answer(50, sent=30), unsent, answer(5, sent=0)).sending_order.tolist() == [2, 1, 0]


def test_the_parts_of_a_window_add_up_to_the_rate(run):
    parts = evenly(run, run.succeeded.astype(float))
    assert len(parts) == 108 // 4
    assert parts.mean() == pytest.approx(all_metrics()["request_throughput"].result(run).value)


def test_what_was_done_is_put_into_its_part():
    at = np.array([0.0, 1.0, 2.0, 3.0, 5.0, 7.9, 8.0, 4.0, 3.9])
    amounts = np.array([1, 1, 1, 1, 2, 2, 2, 0.0, 4])
    assert in_parts(at, amounts, 8.0).tolist() == [(1 + 1 + 1 + 1 + 4) / 4, (2 + 2 + 2) / 4]


def test_gaps_have_those_of_their_parts():
    random = np.random.default_rng(1)
    parts = []
    for _ in range(64):
        parts.append(Histogram())
        parts[-1].add(random.exponential(10.0, 500))
    whole = Histogram.merged(parts)
    intervals = of_samples(Samples(whole, batches=tuple(parts)))
    assert set(intervals) == {"mean", *STATS}
    for stat, value in (("mean", whole.mean), ("p50", whole.quantile(0.5)), ("p99", whole.quantile(0.99))):
        assert intervals[stat].low <= value <= intervals[stat].high


def test_samples_in_no_order_have_none():
    assert of_samples(Samples(np.arange(100.0))) == {}


def test_a_number_that_nothing_is_known_of_has_none():
    assert of_number(Number(3.0)) == {}


def test_a_rate_is_never_below_nothing():
    seldom = np.zeros(100)
    seldom[50] = 1.0
    assert of_number(Number(0.01, evenly=seldom))["mean"].low == 0


def test_a_rate_of_hits_is_known_no_better_than_their_share():
    """Hits come evenly, but half the run has misses: the share's interval is the wider one, and the rate has it."""
    hits = np.repeat([True, False, True, False], 100)
    found = of_number(Number(20.0, evenly=np.full(100, 20.0) + np.arange(100) % 2, hits=hits))["mean"]
    of_share = of_number(Number(50.0, hits=hits))["mean"]
    assert (found.low, found.high) == pytest.approx((20 * of_share.low / 50, 20 * of_share.high / 50))
    assert found.high - found.low > 10
