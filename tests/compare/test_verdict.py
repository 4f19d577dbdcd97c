"""What is said of two sides: pairs, ratios, families, sides of several runs."""

from __future__ import annotations

import numpy as np
import pytest

from loadstone import compare
from loadstone.compare.importers._pace import pace
from loadstone.compare.pairs import matched, paired
from loadstone.compare.sides import Known, Run, Side
from loadstone.compare.words import change
from loadstone.errors import UsageError


def draws(seed, count=400):
    return 20 + np.random.default_rng(seed).gamma(4, 5, count)


def row(found, metric, stat=None):
    rows = found.comparisons[0].rows
    return next(one for one in rows if one.metric == metric and one.stat == stat)


def test_pairs_show_what_their_load_hides(side):
    """The same requests, 2 % slower each, give or take a tenth of a percent."""
    a = draws(1)
    b = a * 1.02 * (1 + 0.001 * np.random.default_rng(2).standard_normal(len(a)))
    with_pairs = compare.report([side("A", a), side("B", b)])
    without = compare.report([side("A", a), side("B", b)], pair=False)
    told = row(with_pairs, "time_to_first_token", "mean")
    assert with_pairs.comparisons[0].pairs == 400
    assert told.differs and told.headline
    assert told.low < 1.02 < told.high
    assert told.high - told.low < 0.001
    assert told.verdict.startswith("B is 2.0 % slower [")
    alone = row(without, "time_to_first_token", "mean")
    assert not alone.differs
    assert alone.shown_from > 0.02
    assert alone.verdict == f"no difference shown; {100 * alone.shown_from:.1f} % would have been"


def test_the_same_run_is_the_same(side):
    found = compare.report([side("A", draws(1)), side("B", draws(1))])
    told = row(found, "request_latency", "p90")
    assert (told.change, told.low, told.high, told.differs) == (1.0, 1.0, 1.0, False)
    assert told.verdict == "the same"


def test_tokens_by_another_tokenizer_are_not_compared_and_it_is_said(side):
    """Nor is it said that answers were longer."""
    longer = {"counted_by": "AIPerf's own tokenizer"}
    b = side("B", draws(2), **longer)
    tokens = b.run.requests._replace(output_tokens=np.full(400, 20.0))
    b = Side("B", (b.run._replace(requests=tokens),))
    found = compare.report([side("A", draws(1)), b], anyway=True).comparisons[0]
    assert not {"output_token_throughput", "total_token_throughput"} & {one.metric for one in found.rows}
    assert found.notes[0] == (
        "Output tokens are counted by another tokenizer (A: the server; B: AIPerf's own tokenizer), so not compared: "
        "output token throughput, total token throughput."
    )
    assert found.warnings == ()
    same = compare.report([side("A", draws(1), **longer), side("B", draws(2), **longer)]).comparisons[0]
    assert "output_token_throughput" in {one.metric for one in same.rows}


def test_the_headline_is_the_first_that_both_have_told_or_not(side):
    found = compare.report([side("A", draws(1, 20)), side("B", draws(2, 20))], pair=False)
    told = next(one for one in found.comparisons[0].rows if one.headline)
    assert (told.metric, told.stat) == ("time_to_first_token", "mean")
    assert told.verdict.startswith("not compared: too few independent requests")


@pytest.mark.parametrize("pair", [None, True])
def test_runs_that_do_not_differ_at_all_show_no_difference(pair):
    """18.40 and 18.42 ms twice each: a percentile that comes in steps, and not certainty."""

    def named(name, value):
        numbers = {("time_to_first_token", "p99"): Known(value), ("error_rate", "mean"): Known(0.0)}
        return Side(name, (Run("1", "t", {}, numbers), Run("2", "t", {}, numbers)))

    found = compare.report([named("A", 18.40), named("B", 18.42)], pair=pair)
    told = row(found, "time_to_first_token", "p99")
    assert told.differs is None
    assert told.verdict.startswith("not compared: runs of one side do not differ at all")
    assert compare.limited(found, 0).regressions == ()
    assert row(found, "error_rate").verdict == "the same"


def test_requests_that_only_one_side_answered_are_no_pair(requests):
    a, b = paired(requests([1.0, 2.0, 3.0], failed=[0]), requests([1.0, 2.0, 3.0], failed=[2]))
    np.testing.assert_array_equal(a.latencies["time_to_first_token"], [np.nan, 2.0, np.nan])
    np.testing.assert_array_equal(b.latencies["time_to_first_token"], [np.nan, 2.0, np.nan])


def test_pairs_are_found_whatever_order_they_were_sent_in(requests):
    swapped = requests([30.0, 20.0, 10.0])._replace(keys=np.array([2, 1, 0]), prompts=np.array([2, 1, 0]))
    a, b = paired(requests([1.0, 2.0, 3.0]), swapped)
    np.testing.assert_array_equal(b.latencies["time_to_first_token"], [10.0, 20.0, 30.0])
    assert a.keys.tolist() == b.keys.tolist() == [0, 1, 2]


def test_the_same_row_with_another_prompt_is_no_pair(requests):
    other = requests([10.0, 20.0, 30.0])._replace(prompts=np.array([0, 9, 2]))
    found = matched(requests([1.0, 2.0, 3.0]), other)
    assert (found.a.tolist(), found.b.tolist(), found.other_prompts) == ([0, 2], [0, 2], 1)


def every_row_has_the_numbers_of(found, a, b):
    for one in found.comparisons[0].rows:
        name = (one.metric, one.stat or "mean")
        assert (one.a, one.b) == (a.numbers[name].value, b.numbers[name].value), name


def test_a_side_that_sent_less_in_the_same_time_is_slower_with_pairs_too(run, requests):
    """The 600 requests of B are the first of A's 1,000, and took as long to send: 10 a second against 6."""
    a = run(of=requests(draws(1, 1000)))
    b = run(of=requests(1.1 * draws(1, 1000)[:600], gap_s=0.1 / 0.6))
    found = compare.report([Side("A", (a,)), Side("B", (b,))])
    assert found.comparisons[0].pairs == 600
    every_row_has_the_numbers_of(found, a, b)
    told = row(found, "request_throughput")
    assert told.change == pytest.approx(0.6, rel=0.01)
    assert told.differs
    assert told.method == "block bootstrap"
    latency = row(found, "time_to_first_token", "mean")
    assert latency.pairs == 600
    assert latency.change == pytest.approx(1.1)
    assert latency.change != latency.b / latency.a
    assert latency.verdict.endswith("over the 600 requests that have it on both sides")
    assert compare.limited(found, 20).regressions == (
        "B: request_throughput",
        "B: output_token_throughput",
        "B: total_token_throughput",
    )


def test_failures_of_requests_without_a_partner_count(run, requests):
    """The last 400 of A, which B never sent, have all of A's failures."""
    a = run(of=requests(draws(1, 1000), failed=range(600, 1000, 4)))
    b = run(of=requests(draws(1, 600)))
    found = compare.report([Side("A", (a,)), Side("B", (b,))])
    every_row_has_the_numbers_of(found, a, b)
    told = row(found, "error_rate")
    assert told.change == pytest.approx(-10.0)
    assert told.pairs is None


def test_pairs_that_are_all_there_is_have_the_change_of_their_columns(run, requests):
    a, b = run(of=requests(draws(1))), run(of=requests(1.02 * draws(1)))
    found = compare.report([Side("A", (a,)), Side("B", (b,))])
    every_row_has_the_numbers_of(found, a, b)
    for one in found.comparisons[0].rows:
        assert one.pairs is None
        assert one.change == pytest.approx(one.b - one.a if one.difference else one.b / one.a, abs=1e-12)


@pytest.fixture
def closed(requests):
    """A closed loop: each slot takes the next request when its answer came."""

    def make(took_s, slots, **more):
        free, sent = np.zeros(slots), np.empty(len(took_s))
        for at, one in enumerate(took_s):
            slot = free.argmin()
            sent[at] = free[slot]
            free[slot] += one
        return requests(100 * took_s, sent_s=sent, pace=pace(sent, sent + took_s), **more)

    return make


def test_a_closed_loop_is_judged_by_the_time_in_its_slots(run, closed):
    took_s = [np.random.default_rng(seed).gamma(20, 0.05, 1000) for seed in (1, 2)]
    a, b = run(of=closed(took_s[0], 4, keys=False)), run(of=closed(1.2 * took_s[1], 4, keys=False))
    found = compare.report([Side("A", (a,)), Side("B", (b,))])
    every_row_has_the_numbers_of(found, a, b)
    told = row(found, "request_throughput")
    assert a.numbers["request_throughput", "mean"].value == pytest.approx(1000 / a.requests.pace.spent.sum())
    assert a.requests.pace.spent == pytest.approx(a.requests.latencies["request_latency"] / 4000, rel=0.01)
    assert told.low < 1 / 1.2 < told.high
    assert told.differs
    assert told.high / told.low < 1.05


def test_the_same_work_in_a_closed_loop_has_another_drain(run, closed):
    """Which slot takes which request, and so what is left at the end, changes with every request by a few percent."""

    def throughput(seed):
        random = np.random.default_rng(seed)
        work = random.gamma(4, 0.25, 300)
        a, b = (run(of=closed(work * np.exp(0.05 * random.standard_normal(300)), 32)) for _ in "ab")
        found = compare.report([Side("A", (a,)), Side("B", (b,))], metrics=["request_throughput"])
        return row(found, "request_throughput")

    found = [throughput(seed) for seed in range(40)]
    assert {one.method for one in found} == {"block bootstrap of pairs"}
    assert sum(one.probability < 0.05 for one in found) <= 2


def test_pairs_by_position_are_taken_only_when_asked_for(side, requests):
    a = side("A", of=requests(draws(1), keys=False))
    b = side("B", of=requests(draws(1), keys=False))
    assert not compare.report([a, b]).comparisons[0].paired
    assert compare.report([a, b], pair=True).comparisons[0].pairs == 400
    shorter = side("B", of=requests(draws(1, 300), keys=False))
    with pytest.raises(UsageError, match="--pair: they have different numbers of requests"):
        compare.report([a, shorter], pair=True)


def test_percentiles_with_too_few_samples_are_not_compared(side):
    told = row(compare.report([side("A", draws(1)), side("B", draws(2))]), "time_to_first_token", "p99")
    assert told.low is None
    assert told.differs is None
    assert told.verdict == "not compared: too few samples: p99 takes 1,000 or more of each side."


def test_error_rates_differ_in_percentage_points(side):
    found = compare.report([side("A", draws(1)), side("B", draws(1), failed=range(0, 400, 10))])
    told = row(found, "error_rate")
    assert told.difference
    assert told.change == pytest.approx(10.0)
    assert told.low < 10 < told.high
    assert told.verdict.startswith("B is 10 pp higher (worse) [")
    assert change(told).startswith("+10 pp [+")


def test_no_failures_on_either_side_leave_a_doubt(side):
    told = row(compare.report([side("A", draws(1)), side("B", draws(2))], pair=False), "error_rate")
    assert told.change == 0
    assert told.high == pytest.approx(0.69, abs=0.02)
    assert not told.differs


def test_the_headline_stands_first_and_can_be_chosen(side):
    found = compare.report([side("A", draws(1)), side("B", draws(2))], headline=("request_latency", "p50"))
    first = found.comparisons[0].rows[0]
    assert (first.metric, first.stat, first.headline) == ("request_latency", "p50", True)
    assert first.adjusted == first.probability
    assert not any(one.headline for one in found.comparisons[0].rows[1:])


def test_other_rows_are_judged_together(side):
    rows = compare.report([side("A", draws(1)), side("B", draws(2))], pair=False).comparisons[0].rows
    told = [one for one in rows[1:] if one.probability is not None]
    smallest = min(told, key=lambda one: one.probability)
    assert smallest.adjusted == pytest.approx(min(len(told) * smallest.probability, 1))
    assert all(one.adjusted >= one.probability for one in told)


def test_summaries_alone_have_no_interval(side):
    a, b = (
        Run(path="p", tool="t", asked={}, numbers={("request_latency", "mean"): Known(v)})
        for v in (10.0, 11.0)
    )
    told = row(compare.report([Side("A", (a,)), Side("B", (b,))]), "request_latency", "mean")
    assert (told.change, told.low) == (1.1, None)
    assert told.verdict.startswith("not compared: only summaries are known")


def test_summaries_with_intervals_are_compared_by_them():
    def one(value, half):
        return Run(
            path="p",
            tool="t",
            asked={},
            numbers={("request_latency", "mean"): Known(value, value / half, value * half)},
        )

    found = compare.report([Side("A", (one(10.0, 1.01),)), Side("B", (one(12.0, 1.01),))])
    told = row(found, "request_latency", "mean")
    assert told.differs
    # Two errors of 1 % in quadrature.
    assert told.high / told.change == pytest.approx(1.01**2**0.5)


def test_metrics_that_count_otherwise_are_not_held_against_ours():
    def one(*metrics):
        return Run(path="p", tool="t", asked={}, numbers={(name, "mean"): Known(1.0) for name in metrics})

    a = Side("A", (one("request_latency", "inter_token_latency"),))
    b = Side("B", (one("request_latency", "inter_chunk_latency"),))
    found = compare.report([a, b]).comparisons[0]
    assert [one.metric for one in found.rows] == ["request_latency"]
    assert found.unlike == ("inter_token_latency", "inter_chunk_latency")


def test_a_small_difference_of_definition_is_told(side):
    b = side("B", draws(1), caveats={"request_latency": "ends later"})
    told = row(compare.report([side("A", draws(1)), b]), "request_latency", "mean")
    assert told.caveat == "loadstone 1: ends later."
    both = side("A", draws(1), caveats={"request_latency": "ends later"})
    assert row(compare.report([both, b]), "request_latency", "mean").caveat is None


def test_sides_of_several_runs_are_judged_by_how_their_runs_differ(run):
    a = Side("A", tuple(run(draws(1) * scale) for scale in (1.0, 1.01, 0.99)))
    b = Side("B", tuple(run(draws(1) * scale) for scale in (1.2, 1.21, 1.19)))
    told = row(compare.report([a, b]), "time_to_first_token", "mean")
    assert told.method == "Student t over runs"
    assert told.low < 1.2 < told.high
    assert told.differs
    with pytest.raises(UsageError, match="B is one run and A is 3, so nothing can be compared"):
        compare.report([a, Side("B", (run(draws(2)),))])


def test_a_regression_has_to_be_shown_beyond_the_limit(side):
    a = draws(1)
    found = compare.report([side("A", a), side("B", a * 1.1)])
    assert compare.limited(found, 5).regressions[0] == "B: time_to_first_token.mean"
    assert compare.limited(found, 10.5).regressions == ()
    faster = compare.report([side("A", a), side("B", a * 0.9)])
    assert compare.limited(faster, 0).regressions == ()
