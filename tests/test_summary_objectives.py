"""Verdicts on objectives: which side of the limit everything lies on that the true value may be."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from loadstone.errors import Exit, UsageError
from loadstone.estimate import clopper_pearson
from loadstone.metrics import all_metrics
from loadstone.report import Interval, SloVerdict
from loadstone.summary import exit_code
from loadstone.summary.measure import measure
from loadstone.summary.objectives import _more_of_share, judged_by, verdicts


@pytest.fixture
def judged(tables):
    """The verdicts on a run with these rows; `intervals` are put in place of those of the metrics named."""

    def of(slo, *rows, intervals=None, **run):
        found = tables(*rows, slo=[slo], **run)
        metrics = {name: measure(metric, found) for name, metric in all_metrics().items()}
        for name, (stat, low, high, more) in (intervals or {}).items():
            one = Interval(low=low, high=high, **more)
            metrics[name] = replace(metrics[name], intervals={stat: one})
        return verdicts(found, metrics)

    return of


@pytest.fixture
def spread(answer):
    """Requests sent one after the other, so many with a first token after 50 ms, the others spread among them after 500."""

    def of(fast, slow=0, **more):
        every = (fast + slow) // slow if slow else fast + 1
        return [
            answer(i + (500 if slow and i % every == every - 1 else 50), i + 600, sent=i, **more)
            for i in range(fast + slow)
        ]

    return of


@pytest.mark.parametrize(
    ("fast", "slow", "verdict"),
    [(1000, 0, "PASS"), (100, 0, "UNDECIDED"), (990, 10, "UNDECIDED"), (900, 100, "FAIL")],
)
def test_a_percentile_is_decided_by_the_share_beyond_its_limit(judged, spread, fast, slow, verdict):
    [found] = judged("ttft.p99<200ms", *spread(fast, slow))
    assert found.verdict == verdict
    assert f"of {fast + slow:,} requests are above 200 ms" in found.finding


def test_so_many_more_decide_it_if_it_goes_on_like_that(judged, spread):
    [found] = judged("ttft.p99<200ms", *spread(100))
    more = found.more_requests
    assert 270 <= more <= 400
    assert clopper_pearson.high(0.0, 100 + more) <= 0.01
    [decided] = judged("ttft.p99<200ms", *spread(100 + more))
    assert decided.verdict == "PASS"


@given(
    st.sampled_from([0.0, 0.002, 0.02, 0.2]),
    st.sampled_from([0.001, 0.01, 0.05, 0.1, 0.5]),
    st.integers(20, 5000),
)
def test_with_so_many_more_the_limit_is_outside_and_with_much_fewer_within(seen, allowed, n):
    def ends(requests):
        return clopper_pearson.low(seen, requests), clopper_pearson.high(seen, requests)

    low, high = ends(n)
    more = _more_of_share(seen, low, high, allowed, n)
    if more is None or not low < allowed < high:
        return
    low, high = ends(n + more)
    assert not low * (1 + 1e-6) < allowed < high * (1 - 1e-6)
    low, high = ends(max(n + 0.85 * more - 2, n))
    assert low < allowed < high


def test_a_low_percentile_of_what_should_be_high_is_held_the_other_way_round(judged, answer):
    rows = [answer(i + 10, i + 20, i + 30, sent=i) for i in range(1000)]
    fast, slow = judged(
        "output_token_throughput_per_user.p10>50,output_token_throughput_per_user.p50>150", *rows
    )
    assert (fast.verdict, slow.verdict) == ("PASS", "FAIL")
    assert "are below 50 tokens/s/user" in fast.finding


@pytest.mark.parametrize(
    ("low", "high", "verdict"),
    [(10, 20, "PASS"), (60, 70, "FAIL"), (40, 60, "UNDECIDED"), (50, 50, "PASS"), (50, 60, "UNDECIDED")],
)
def test_where_the_interval_lies_decides(judged, spread, low, high, verdict):
    [found] = judged("e2e.mean<50ms", *spread(40), intervals={"request_latency": ("mean", low, high, {})})
    assert found.verdict == verdict
    assert found.interval.low == low


@pytest.mark.parametrize(
    ("low", "high", "verdict"), [(60, 70, "PASS"), (10, 20, "FAIL"), (40, 60, "UNDECIDED")]
)
def test_where_more_is_better_it_decides_the_other_way_round(judged, spread, low, high, verdict):
    name = "output_token_throughput"
    [found] = judged(f"{name}>50", *spread(40), intervals={name: ("mean", low, high, {})})
    assert found.verdict == verdict


def test_the_interval_has_to_shrink_to_the_distance_of_the_limit(judged, spread):
    rows = spread(40)
    interval = {"request_latency": ("mean", 560.0, 640.0, {})}
    [found] = judged("e2e.mean<620ms", *rows, intervals=interval)
    assert found.value == pytest.approx(600)
    assert found.more_requests == 120  # half as wide takes four times as many


def test_an_interval_that_was_withheld_decides_nothing_and_says_what_it_takes(judged, spread):
    withheld = {"request_latency": ("mean", None, None, {"reason": "too few samples.", "needs": 100})}
    [found] = judged("e2e.mean<50ms", *spread(40), intervals=withheld)
    assert (found.verdict, found.more_requests) == ("UNDECIDED", 60)
    assert found.finding.endswith("may be from it: too few samples.")


def test_a_metric_without_a_value_decides_nothing(judged, answer):
    [found] = judged("ttft.p50<1s", answer(outcome="reset"))
    assert (found.verdict, found.value) == ("UNDECIDED", None)
    assert found.finding == "There is no value: no request succeeded."


def test_extremes_and_counts_are_facts_of_the_run(judged, spread):
    found = judged("ttft.max<400ms,ttft.min<60ms,late_count<1", *spread(99, 1))
    assert [one.verdict for one in found] == ["FAIL", "PASS", "PASS"]
    assert found[0].finding == "It was 500 ms in this run, which is all that is judged."


def test_failures_are_in_the_adjusted_latency_alone(judged, spread, answer):
    rows = [*spread(300), *(answer(sent=5 * i + 0.5, outcome="reset") for i in range(60))]
    plain, adjusted = judged("e2e.p90<1s,adjusted_request_latency.p90<1s", *rows)
    assert plain.verdict == "PASS"
    assert (adjusted.verdict, adjusted.value, adjusted.infinite) == ("FAIL", None, True)
    assert adjusted.finding.startswith("16.7 % of 360 requests are above 1,000 ms")


def test_an_adjusted_latency_where_nothing_failed_is_the_plain_one(judged, spread):
    plain, adjusted = judged("ttft.p90<1s,adjusted_time_to_first_token.p90<1s", *spread(300))
    assert (adjusted.verdict, adjusted.value, adjusted.finding) == ("PASS", plain.value, plain.finding)


def test_no_objective_is_met_that_is_missed_with_what_was_cut_off(judged, answer, spread):
    cut = [answer(sent=0, done=5000, outcome="cut") for _ in range(30)]
    [found] = judged("e2e.p90<1s", *spread(170), *cut)
    assert found.verdict == "UNDECIDED" or found.verdict == "FAIL"
    assert "with the 30 requests that were cut off it is" in found.finding


def test_few_that_were_cut_off_change_nothing(judged, answer, spread):
    [found] = judged("e2e.p90<1s", *spread(170), answer(sent=0, done=5000, outcome="cut"))
    assert found.verdict == "PASS"


def test_what_is_about_each_request_has_no_verdict(judged, spread):
    assert judged("ttft<200ms", *spread(10)) == ()


def test_a_load_that_was_ended_for_an_objective_is_judged_by_what_was_sent(judged, spread):
    why = "error_rate<1%: 29 requests are beyond it, which is too many of 2,000 planned"
    first, other = judged("error_rate<1%,ttft.p99<5s", *spread(40), stopped_by="slo", stopped_why=why)
    assert (first.verdict, other.verdict) == ("UNDECIDED", "UNDECIDED")
    assert first.finding.endswith(
        "The load ended since 29 requests are beyond it, which is too many of 2,000 planned."
    )
    assert "The load ended" not in other.finding


@pytest.mark.parametrize(
    ("slo", "low", "verdict"),
    [("e2e.mean<50ms", 60.0, "FAIL"), ("e2e.mean<50ms", 40.0, "UNDECIDED")],
)
def test_an_interval_that_is_open_above_is_judged_by_the_end_it_has(judged, spread, slo, low, verdict):
    [found] = judged(slo, *spread(40), intervals={"request_latency": ("mean", low, None, {"reason": "few."})})
    assert found.verdict == verdict
    assert f"at least {low:g} ms" in found.finding


def test_where_more_is_better_an_end_below_is_enough_to_pass(judged, spread):
    name = "output_token_throughput"
    [passed] = judged(f"{name}>50", *spread(40), intervals={name: ("mean", 60.0, None, {})})
    [neither] = judged(f"{name}>50", *spread(40), intervals={name: ("mean", 40.0, None, {"needs": 100})})
    assert (passed.verdict, neither.verdict) == ("PASS", "UNDECIDED")


def test_without_an_error_the_rule_of_three_says_how_many_decide(judged, spread):
    [found] = judged("error_rate<0.1%", *spread(1_000))
    assert (found.verdict, found.more_requests) == ("UNDECIDED", 2_700)  # 3,687 without an error


def test_a_pass_without_a_failure_says_what_it_rests_on(judged, spread):
    [found] = judged("error_rate<1%", *spread(1_000))
    assert found.verdict == "PASS"
    assert found.finding.endswith("all within the limit, if failures come one by one.")


def test_one_error_in_170_decides_nothing_about_one_in_a_thousand(judged, spread, answer):
    [found] = judged("error_rate<0.1%", *spread(169), answer(sent=80.5, outcome="reset"))
    assert found.verdict == "UNDECIDED"


def test_other_objectives_take_the_place_of_those_of_the_run(tables, spread):
    config = tables(*spread(3), slo=["ttft.p99<1s"], goodput={"request_latency": 9.0}).run.config
    kept = judged_by(config, ["e2e.p50<2s"])["slo"]
    assert (list(kept["objectives"]), kept["goodput"]) == (["e2e.p50<2s"], {"request_latency": 9.0})
    assert judged_by(config, ["tpot<5ms"])["slo"]["goodput"] == {"time_per_output_token": 5.0}
    assert list(config["slo"]["objectives"]) == ["ttft.p99<1s"]
    with pytest.raises(UsageError, match="needs due times"):
        judged_by(config, ["request_latency_from_due.p99<2s"])


def verdict(word):
    return SloVerdict(
        objective="error_rate<1%",
        metric="error_rate",
        stat=None,
        limit=1.0,
        better="lower",
        unit="%",
        value=None,
        interval=None,
        verdict=word,
        finding="",
    )


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ([], Exit.DONE),
        (["PASS"], Exit.DONE),
        (["PASS", "UNDECIDED"], Exit.UNDECIDED),
        (["UNDECIDED", "FAIL", "PASS"], Exit.SLO_MISSED),
    ],
)
def test_the_worst_verdict_is_the_exit_code(valid_report, words, code):
    slo = tuple(map(verdict, words))
    assert exit_code(replace(valid_report, slo=slo)) == code
    invalid = replace(valid_report.certificate, verdict="INVALID")
    assert exit_code(replace(valid_report, slo=slo, certificate=invalid)) == Exit.INVALID


@pytest.fixture
def valid_report(tmp_path, frame, run_log, answer):
    """A report that is believed, of one request."""
    from loadstone import folder
    from loadstone.folder import write_run
    from loadstone.summary import summarise

    frame(answer(50, 60)).write_parquet(tmp_path / folder.REQUESTS)
    write_run(tmp_path, run_log())
    made = summarise(tmp_path)
    return replace(made, certificate=replace(made.certificate, verdict="VALID"))
