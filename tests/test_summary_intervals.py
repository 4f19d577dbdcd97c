"""Every headline statistic of a report has its interval, or says why not."""

from __future__ import annotations

import numpy as np
import pytest

from loadstone.estimate.rates import open_loop
from loadstone.histogram import Histogram
from loadstone.metrics import Number, Samples, all_metrics
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
def test_a_share_has_the_exact_one(run, name, percent):
    result = found(name, run)
    interval = result.intervals["mean"]
    assert interval.method == "Clopper-Pearson"
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
    assert found("request_throughput", few).intervals["mean"].needs == 20


def test_samples_come_in_the_order_of_sending(tables, answer):
    run = tables(answer(50, sent=30), answer(5, sent=0), answer(12, sent=2))
    samples = all_metrics()["request_latency"].result(run)
    assert samples.in_order
    assert samples.values.tolist() == [5.0, 10.0, 20.0]


def test_one_that_was_never_sent_stands_where_it_was_due(tables, answer):
    unsent = answer(sent=None, due=1.0, outcome="not-sent")
    assert tables(answer(50, sent=30), unsent, answer(5, sent=0)).sending_order.tolist() == [2, 1, 0]


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
    seldom, sent = np.zeros(100), np.arange(100.0)
    seldom[50] = 1.0
    assert of_number(Number(0.01, rate=(seldom, open_loop(sent, sent + 1, by_time=False))))["mean"].low > 0
