"""Objectives as people write them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadstone.config.values import limits
from loadstone.errors import UsageError
from loadstone.slo import SHORT_NAMES, STATS, TIME, UNITS_MS, Kind, Objective, objectives, split

METRICS = {
    **dict.fromkeys(SHORT_NAMES.values(), TIME),
    "inter_token_latency_pooled": Kind(),
    "error_rate": Kind("%", number=True),
    "output_token_throughput": Kind("tokens/s", "higher", number=True),
    "output_token_throughput_per_user": Kind("tokens/s/user", "higher", each=True),
    "output_sequence_length": Kind("tokens", "neither", each=True),
    "benchmark_duration": Kind("s", number=True),
}


def read(text, default=""):
    return objectives([text], METRICS, default)


def refusal(text, default=""):
    with pytest.raises(UsageError) as caught:
        read(text, default)
    return str(caught.value)


def test_short_and_long_names_with_a_statistic():
    assert read("ttft.p50<0.5s, Inter_Token_Latency.P99.9<40000us,e2e.mean < 2e3ms") == [
        Objective("time_to_first_token", "p50", 500.0),
        Objective("inter_token_latency", "p99_9", 40.0),
        Objective("request_latency", "mean", 2000.0),
    ]


def test_the_words_of_other_tools_for_a_statistic():
    assert [one.stat for one in read("ttft.median<1s,e2e.avg<1s,ttft.P99<1s")] == ["p50", "mean", "p99"]


def test_without_a_statistic_it_is_about_each_request():
    assert read("tpot<40ms") == [Objective("time_per_output_token", "", 40.0, each=True)]


def test_without_requests_to_ask_it_is_the_statistic_that_is_usual():
    assert read("ttft<1s", "mean") == [Objective("time_to_first_token", "mean", 1000.0)]


def test_one_number_has_no_statistic_and_is_about_no_request():
    [found] = read("error_rate<0.1%", "p99")
    assert found == Objective("error_rate", "", 0.1, "%")
    assert "is one number; leave .p99 out" in refusal("error_rate.p99<1%")


def test_where_more_is_better_the_limit_is_a_least():
    [number, each] = read("output_token_throughput>1e3,output_token_throughput_per_user>30tokens/s/user")
    assert number == Objective("output_token_throughput", "", 1000.0, "tokens/s", "higher")
    assert each.each
    assert number.keeps(1000.0)
    assert not number.keeps(999.9)


def test_at_the_limit_it_is_kept_so_the_equals_sign_changes_nothing():
    assert read("ttft.p99<=200ms") == read("ttft.p99<200ms")
    assert read("output_token_throughput>=9") == read("output_token_throughput>9")
    assert read("ttft.p99<200ms")[0].keeps(200.0)


def test_times_are_in_the_unit_of_the_metric():
    assert read("benchmark_duration<500ms")[0].limit == 0.5


@given(
    name=st.sampled_from([*SHORT_NAMES, *SHORT_NAMES.values()]),
    stat=st.sampled_from(["", *STATS]),
    limit=st.floats(1e-3, 1e6),
    unit=st.sampled_from(sorted(UNITS_MS)),
    spaced=st.booleans(),
)
def test_what_is_written_is_read_as_it_was_meant_and_written_again(name, stat, limit, unit, spaced):
    gap = " " if spaced else ""
    [found] = read(f"{name}{'.' if stat else ''}{stat.replace('_', '.')}{gap}<{gap}{limit!r}{unit}")
    assert found[:2] == (SHORT_NAMES.get(name, name), stat)
    assert found.limit == pytest.approx(limit * UNITS_MS[unit])
    assert found.each == (not stat)
    [again] = read(str(found))
    assert again._replace(limit=0) == found._replace(limit=0)
    assert again.limit == pytest.approx(found.limit, rel=1e-9)


@given(st.text(max_size=30))
def test_any_text_is_an_objective_or_refused_in_a_sentence(text):
    try:
        found = read(text)
    except UsageError as error:
        assert str(error).startswith("--slo")
    else:
        assert len(found) == len(split([text]))


def test_several_flags_and_commas_are_one_list():
    assert split(["a<1, b<2", " ", "c<3"]) == ["a<1", "b<2", "c<3"]


@pytest.mark.parametrize("short", SHORT_NAMES)
def test_goodput_and_slo_know_the_same_short_names(short):
    assert limits([f"{short}:200"]) == {SHORT_NAMES[short]: 200}
    assert read(f"{short}<200ms")[0].metric == SHORT_NAMES[short]


def test_who_writes_one_in_the_way_of_the_other_is_told_so():
    assert "METRIC:NUMBER is how --goodput of loadstone profile limits each request" in refusal("ttft:200")
    with pytest.raises(ValueError, match=r"METRIC<LIMIT is for --slo"):
        limits(["ttft<200ms"])


@pytest.mark.parametrize("limit", ["0ms", "1e999s"])
def test_a_limit_is_above_0_and_finite(limit):
    assert "above 0, and finite" in refusal(f"ttft<{limit}")


def test_twice_the_same_says_what_stands_where_none_is_named():
    assert "is limited twice (p99 is the default)" in refusal("itl<5ms,itl.p99<9ms", "p99")
    assert "inter_token_latency.p50 is limited twice; give it once" in refusal("itl.p50<5ms,itl.p50<9ms")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "--slo is empty"),
        (" , ", "--slo is empty"),
        ("ttft.p99", "is not METRIC.STATISTIC<LIMIT"),
        ("ttft>500ms", "lower is better for time_to_first_token: write <"),
        ("output_token_throughput<5", "higher is better for output_token_throughput: write >"),
        ("output_sequence_length.p50<5", "neither more nor less is better"),
        ("inter_token_latency_pooled<5ms", "name a statistic, such as inter_token_latency_pooled.p99"),
        ("time_to_first_tokens<1ms", "Did you mean time_to_first_token?"),
        ("ttft<200", "needs a unit: us, ms, s"),
        ("error_rate<0.1", "needs the unit %"),
        ("output_token_throughput>5ms", "ms is not its unit; write tokens/s, or none"),
        (
            "ttft.p42<200ms",
            "there is no p42. Known: mean, min, max, p1, p5, p10, p25, p50, p75, p90, p95, p99, p99.9.",
        ),
        ("tftt<200ms", "there is no tftt. Did you mean ttft?"),
        ("p99_ttft_ms<200ms", "there is no p99_ttft_ms. Did you mean time_to_first_token.p99?"),
        ("median_ttft<200ms", "Did you mean time_to_first_token.p50?"),
        ("xyzzy<1ms", "there is no xyzzy. Known: "),
        ("ttft.p99<1s;itl.p99<30ms", "objectives are separated by commas"),
        ("ttft<1.2.3ms", "is not a number"),
    ],
)
def test_what_is_no_objective_is_refused(text, said):
    assert said in refusal(text)
