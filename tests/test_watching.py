"""Which objectives may end the load before its time, and from how many requests on."""

from __future__ import annotations

import pytest

from loadstone.config import Config, EndpointConfig, InputConfig, LoadConfig, SloConfig
from loadstone.errors import UsageError
from loadstone.estimate.clopper_pearson import low
from loadstone.metrics import _objectives
from loadstone.plan import schedule
from loadstone.watching import NO_END, measured_rows, watched


def settled(slo, **load):
    config = Config(
        endpoint=EndpointConfig(streaming=True),
        load=LoadConfig(**({"request_count": 1000} | load)),
        slo=SloConfig(objectives=tuple(slo.split(",")) if slo else ()),
    )
    phases = schedule.phases(config.load, InputConfig())
    config = _objectives.settled(config, phases)
    return config, _objectives.of_run(config), phases


def found(slo, **load):
    return watched(*settled(slo, **load), seed=1)


def refusal(slo, **load):
    with pytest.raises(UsageError) as caught:
        found(slo, **load)
    return str(caught.value)


def test_so_many_that_the_verdict_on_all_that_are_planned_would_be_fail():
    [one] = found("error_rate<1%")
    assert (one.planned, one.failures, one.limits) == (1000, True, {})
    assert low(one.most / 1000, 1000) <= 0.01 < low((one.most + 1) / 1000, 1000)


def test_a_percentile_counts_answers_and_its_adjusted_one_failures_too():
    plain, adjusted = found("ttft.p99<500ms,adjusted_request_latency.p90<2s")
    assert (plain.limits, plain.failures) == ({"time_to_first_token": 500.0}, False)
    assert (adjusted.limits, adjusted.failures) == ({"request_latency": 2000.0}, True)
    assert adjusted.most > 5 * plain.most


def test_attainment_counts_what_misses_any_limit():
    [one] = found("goodput_attainment>99%,tpot<40ms,ttft<1s")
    assert one.limits == {"time_per_output_token": 40.0, "time_to_first_token": 1000.0}
    assert one.failures


def test_a_greatest_value_is_missed_with_the_first_one_above():
    assert found("ttft.max<1s")[0].most == 0


def test_arrivals_of_a_duration_are_counted_beforehand():
    [one] = found(
        "error_rate<1%", request_count=None, request_rate=10.0, duration_s=60.0, arrival_pattern="constant"
    )
    assert one.planned == 600


@pytest.mark.parametrize(
    ("slo", "load", "said"),
    [
        ("", {}, "has no effect without an objective"),
        ("ttft.mean<1s", {}, "none of the objectives can be missed for certain"),
        ("error_rate<1%", {"request_count": None, "duration_s": 9.0}, "give --request-count, or a rate"),
        (",".join(f"e2e.{stat}<9s" for stat in ("p1", "p5", "p10", "p25", "p50", "p75", "p90", "p95", "p99")), {}, "at most 8"),
    ],
)  # fmt: skip
def test_what_cannot_be_watched_is_refused(slo, load, said):
    assert said in refusal(slo, **load)


def test_only_measured_requests_count():
    _, _, phases = settled("", warmup_request_count=20)
    assert [phase.kind for phase in phases] == ["warmup", "measured"]
    assert measured_rows(phases) == [(20, NO_END)]
