"""Objectives as people write them."""

from __future__ import annotations

import pytest

from loadstone.config.values import limits
from loadstone.errors import UsageError
from loadstone.slo import SHORT_NAMES, Objective, objectives

METRICS = frozenset(SHORT_NAMES.values())


def refusal(text):
    with pytest.raises(UsageError) as caught:
        objectives(text, METRICS)
    return str(caught.value)


def test_short_and_long_names_with_and_without_a_statistic():
    assert objectives("ttft.p50<0.5s, Inter_Token_Latency<40ms,e2e.mean < 2e3ms", METRICS) == [
        Objective("time_to_first_token", "p50", 500.0),
        Objective("inter_token_latency", "p99", 40.0),
        Objective("request_latency", "mean", 2000.0),
    ]


def test_it_is_written_as_it_is_read():
    assert objectives("itl.P99.9<40000us", METRICS) == [Objective("inter_token_latency", "p99_9", 40.0)]
    assert str(objectives("ttft<0.5s", METRICS)[0]) == "time_to_first_token.p99<500ms"


def test_without_a_statistic_it_is_the_one_that_is_usual():
    assert objectives("ttft<1s", METRICS, "mean") == [Objective("time_to_first_token", "mean", 1000.0)]


@pytest.mark.parametrize("short", SHORT_NAMES)
def test_goodput_and_slo_know_the_same_short_names(short):
    assert limits([f"{short}:200"]) == {SHORT_NAMES[short]: 200}
    assert objectives(f"{short}<200ms", METRICS)[0].metric == SHORT_NAMES[short]


def test_who_writes_one_in_the_way_of_the_other_is_told_so():
    assert "METRIC:NUMBER is how --goodput of loadstone profile limits each request" in refusal("ttft:200")
    with pytest.raises(ValueError, match="METRIC<TIME is how --slo of loadstone roofline and plan"):
        limits(["ttft<200ms"])


def test_at_most_is_not_below():
    assert "is kept when it is below its limit" in refusal("ttft<=200ms")


@pytest.mark.parametrize("limit", ["0ms", "1e999s"])
def test_a_limit_is_above_0_and_finite(limit):
    assert "above 0, and finite" in refusal(f"ttft<{limit}")


def test_twice_the_same_says_what_stands_where_none_is_named():
    assert "is limited twice (p99 is the default)" in refusal("itl<5ms,itl.p99<9ms")
    assert "is limited twice; give it once" in refusal("itl.p50<5ms,itl.p50<9ms")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "--slo is empty"),
        (" , ", "--slo is empty"),
        ("ttft>500ms", "is not METRIC.STATISTIC<LIMIT"),
        ("time_to_first_tokens<1ms", "Did you mean time_to_first_token?"),
        ("ttft<200", "needs a unit: us, ms, s"),
        ("ttft.p42<200ms", "there is no p42"),
        ("tftt<200ms", "there is no tftt"),
        ("ttft<1.2.3ms", "is not a number"),
    ],
)
def test_what_is_no_objective_is_refused(text, said):
    assert said in refusal(text)
