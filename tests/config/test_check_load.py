"""Shapes of load whose settings do not fit together are refused, each with its sentence; those that fit pass."""

from __future__ import annotations

import pytest

from loadstone.config import Config, EndpointConfig, InputConfig, LoadConfig, check
from loadstone.config.check_load import WAYS, bounded, ways
from loadstone.errors import UsageError

STREAM = EndpointConfig(streaming=True)
FILE = InputConfig(file="trace.jsonl")
SERIES = ((0.0, 1.0), (60.0, 20.0))
BY_INDEX = {
    "index_ramp_strategy": "linear",
    "index_ramp_start": 1.0,
    "index_ramp_end": 9.0,
    "request_count": 9,
}


def refusal(**load):
    with pytest.raises(UsageError) as caught:
        check(Config(endpoint=STREAM, input=FILE, load=LoadConfig(**load)))
    return str(caught.value)


REFUSED = [
    # one way to say when
    (
        {"request_rate": 1.0, "request_rate_series": SERIES},
        "request_rate = 1: --request-rate-series says when requests are sent too; give one of them.",
    ),
    ({"request_rate": 1.0, "fixed_schedule": True}, "request_rate = 1: --fixed-schedule says when"),
    ({"request_rate": 1.0, "user_centric_rate": 1.0, "users": 2}, "request_rate = 1: --user-centric-rate says when"),
    ({"request_rate": 1.0, **BY_INDEX}, "request_rate = 1: --ramp-up-strategy says when"),
    ({"request_rate_series": SERIES, "fixed_schedule": True}, "request_rate_series = 0:1,60:20: --fixed-schedule"),
    ({"fixed_schedule": True, "user_centric_rate": 1.0, "users": 2}, "fixed_schedule = true: --user-centric-rate"),
    ({"user_centric_rate": 1.0, "users": 2, **BY_INDEX}, "user_centric_rate = 1: --ramp-up-strategy says when"),
    # gaps
    ({"arrival_pattern": "poisson"}, "arrival_pattern = poisson: has no effect in a closed loop; set --request-rate"),
    ({"arrival_smoothness": 0.5}, "arrival_smoothness = 0.5: has no effect in a closed loop"),
    ({"arrival_pattern": "constant", "fixed_schedule": True}, "arrival_pattern = constant: has no effect on a fixed"),
    (
        {"arrival_pattern": "constant", "user_centric_rate": 1.0, "users": 2},
        "arrival_pattern = constant: has no effect with --user-centric-rate; leave it out.",
    ),
    (
        {"arrival_pattern": "gamma", "request_rate": "inf", "request_count": 5},
        "arrival_pattern = gamma: has no effect when everything is sent at once; give a rate or leave it out.",
    ),
    ({"arrival_smoothness": 2.0, "request_rate": "inf", "request_count": 5}, "arrival_smoothness = 2: has no effect"),
    (
        {"arrival_pattern": "poisson", **BY_INDEX},
        "arrival_pattern = poisson: has no effect with --ramp-up-strategy, whose gaps are gamma; leave it out.",
    ),
    (
        {"request_rate": 1.0, "arrival_pattern": "constant", "arrival_smoothness": 2.0},
        "arrival_smoothness = 2: has no effect on constant arrivals; set --arrival-pattern gamma or leave it out.",
    ),
    # conditioned
    ({"conditioned": True, "request_count": 9}, "conditioned = true: has no effect without a --request-rate."),
    ({"conditioned": True, "request_rate_series": SERIES, "request_count": 9}, "conditioned = true: has no effect"),
    ({"conditioned": True, "request_rate": "inf", "request_count": 9}, "conditioned = true: has no effect without"),
    ({"conditioned": True, "request_rate": 1.0}, "conditioned = true: needs --request-count: it says when the last"),
    (
        {"conditioned": True, "request_rate": 1.0, "request_count": 9, "arrival_pattern": "constant"},
        "conditioned = true: has no effect on constant arrivals; leave it out.",
    ),
    (
        {"conditioned": True, "request_rate": 1.0, "request_count": 9, "duration_s": 5.0},
        "conditioned = true: is for a load that only --request-count ends.",
    ),
    (
        {"conditioned": True, "request_rate": 1.0, "request_count": 9, "sessions": 5},
        "conditioned = true: is for a load that only --request-count ends.",
    ),
    (
        {"conditioned": True, "request_rate": 1.0, "request_count": 9, "request_rate_ramp_s": 5.0},
        "conditioned = true: does not go with a ramp of the rate.",
    ),
    # points
    ({"request_rate_series": ((5.0, 1.0), (0.0, 2.0))}, "request_rate_series = 5:1,0:2: goes back in time"),
    ({"request_rate_series": ((0.0, 1.0), (0.0, 2.0), (0.0, 3.0))}, "request_rate_series = 0:1,0:2,0:3: has three"),
    ({"request_rate_series": ((0.0, 0.0), (5.0, 0.0))}, "request_rate_series = 0:0,5:0: must have a rate above 0."),
    ({"request_rate_series": ((0.0, 1e7),)}, "request_rate_series = 0:1e+07: must have rates of at most 1,000,000."),
    # everything at once
    (
        {"request_rate": "inf", "duration_s": 5.0},
        "request_rate = inf: sends everything at once, and a duration does not say how much; set --request-count.",
    ),
    # a fixed schedule
    ({"fixed_schedule_auto_offset": True}, "fixed_schedule_auto_offset = true: has no effect without --fixed-schedule"),
    ({"fixed_schedule_start_ms": 5.0}, "fixed_schedule_start_ms = 5: has no effect without --fixed-schedule."),
    ({"fixed_schedule_end_ms": 5.0}, "fixed_schedule_end_ms = 5: has no effect without --fixed-schedule."),
    (
        {"fixed_schedule": True, "fixed_schedule_auto_offset": True, "fixed_schedule_start_ms": 5.0},
        "fixed_schedule_auto_offset = true: load.fixed_schedule_start_ms says where to begin too; give one.",
    ),
    (
        {"fixed_schedule": True, "fixed_schedule_start_ms": 5.0, "fixed_schedule_end_ms": 5.0},
        "fixed_schedule_end_ms = 5: must be after load.fixed_schedule_start_ms = 5.",
    ),
    # users
    ({"users": 3}, "users = 3: has no effect without --user-centric-rate."),
    ({"user_centric_rate": 3.0}, "user_centric_rate = 3: needs --num-users."),
    (
        {"user_centric_rate": 3.0, "users": 3, "concurrency": 5},
        "concurrency = 5: does not go with --user-centric-rate; --num-users says how many.",
    ),
    # ramps
    ({"request_rate_ramp_s": 5.0}, "request_rate_ramp_s = 5: has no effect without a --request-rate, with which"),
    ({"request_rate_ramp_s": 5.0, "request_rate": "inf", "request_count": 5}, "request_rate_ramp_s = 5: has no effect"),
    ({"request_rate_ramp_s": 5.0, "request_rate_series": SERIES}, "request_rate_ramp_s = 5: has no effect without a"),
    ({"request_rate_ramp_s": 5.0, "fixed_schedule": True}, "request_rate_ramp_s = 5: has no effect without a"),
    ({"request_rate_ramp_s": 5.0, "user_centric_rate": 1.0, "users": 2}, "request_rate_ramp_s = 5: has no effect"),
    ({"request_rate_ramp_s": 5.0, **BY_INDEX}, "request_rate_ramp_s = 5: has no effect without a --request-rate"),
    (
        {"request_rate": 5.0, "request_rate_ramp_start": 1.0},
        "request_rate_ramp_start = 1: has no effect without --request-rate-ramp-duration.",
    ),
    (
        {"request_rate": 5.0, "request_rate_ramp_strategy": "exponential"},
        "request_rate_ramp_strategy = exponential: has no effect without --request-rate-ramp-duration.",
    ),
    (
        {"request_rate": 5.0, "request_rate_ramp_s": 9.0, "request_rate_ramp_start": 5.0},
        "request_rate_ramp_start = 5: is --request-rate too, so that nothing changes.",
    ),
    (
        {
            "request_rate": 5.0, "request_rate_ramp_s": 9.0, "request_rate_ramp_start": 0.0,
            "request_rate_ramp_strategy": "exponential",
        },
        "request_rate_ramp_start = 0: must be above 0 for an exponential ramp.",
    ),
    ({"concurrency_ramp_s": 5.0}, "concurrency_ramp_s = 5: has no effect without --concurrency, with which it ends."),
    ({"concurrency_ramp_s": 5.0, "concurrency": 1}, "concurrency_ramp_s = 5: has no effect: it begins and ends with 1."),
    ({"concurrency": 5, "concurrency_ramp_start": 2}, "concurrency_ramp_start = 2: has no effect without --concurrency-"),
    (
        {"concurrency": 5, "concurrency_ramp_s": 5.0, "concurrency_ramp_start": 5},
        "concurrency_ramp_start = 5: is --concurrency too, so that nothing changes.",
    ),
    (
        {"concurrency": 5, "concurrency_ramp_strategy": "exponential"},
        "concurrency_ramp_strategy = exponential: has no effect without --concurrency-ramp-duration.",
    ),
    (
        {"concurrency": 9, "prefill_concurrency_ramp_s": 5.0},
        "prefill_concurrency_ramp_s = 5: has no effect without --prefill-concurrency, with which it ends.",
    ),
    (
        {"concurrency": 9, "prefill_concurrency": 3, "prefill_concurrency_ramp_start": 2},
        "prefill_concurrency_ramp_start = 2: has no effect without --prefill-concurrency-ramp-duration.",
    ),
    (
        {"concurrency": 9, "prefill_concurrency": 3, "prefill_concurrency_ramp_strategy": "exponential"},
        "prefill_concurrency_ramp_strategy = exponential: has no effect without --prefill-concurrency-ramp-duration.",
    ),
    # by index
    ({"index_ramp_start": 1.0}, "index_ramp_start = 1: has no effect without --ramp-up-strategy."),
    ({"index_ramp_end": 1.0}, "index_ramp_end = 1: has no effect without --ramp-up-strategy."),
    (
        {"index_ramp_strategy": "linear", "index_ramp_start": 1.0, "request_count": 9},
        "index_ramp_strategy = linear: needs --ramp-up-start-rps and --ramp-up-end-rps.",
    ),
    (
        {"index_ramp_strategy": "linear", "index_ramp_start": 1.0, "index_ramp_end": 2.0, "duration_s": 9.0},
        "index_ramp_strategy = linear: needs --request-count, over which the rate changes.",
    ),
    # limits
    (
        {"prefill_concurrency": 1},
        "prefill_concurrency = 1: has no effect with at most 1 in flight; make it smaller, or --concurrency greater.",
    ),
    ({"prefill_concurrency": 9, "concurrency": 4}, "prefill_concurrency = 9: has no effect with at most 4 in flight"),
    ({"drain_queue": True, "duration_s": 5.0}, "drain_queue = true: has no effect in a closed loop, where nothing"),
    (
        {"drain_queue": True, "request_rate": 5.0, "duration_s": 5.0},
        "drain_queue = true: has no effect without --concurrency: nothing queues.",
    ),
    (
        {"drain_queue": True, "request_rate": 5.0, "concurrency": 2},
        "drain_queue = true: has no effect without --benchmark-duration.",
    ),
    ({"cancellation_delay_s": 5.0}, "cancellation_delay_s = 5: has no effect without --request-cancellation-rate."),
    # stops
    (
        {"request_count": 5, "grace_s": 3.0},
        "grace_s = 3: has no effect without --benchmark-duration; all answers are awaited anyway.",
    ),
    # too short
    ({"duration_s": 1e-9}, "duration_s = 1e-09: must be at least 0.001; nothing is sent in less."),
]  # fmt: skip


@pytest.mark.parametrize(("load", "sentence"), REFUSED, ids=[sentence[:60] for _, sentence in REFUSED])
def test_what_does_not_fit_is_refused_with_its_key(load, sentence):
    assert refusal(**load).startswith(f"load.{sentence}")


FITTING = [
    {},
    {"concurrency": 4, "duration_s": 5.0, "grace_s": 0.0},
    {"request_rate": 10.0, "arrival_pattern": "poisson", "concurrency": 4},
    {"request_rate": 10.0, "arrival_smoothness": 0.5},
    {"request_rate": 10.0, "arrival_pattern": "gamma", "arrival_smoothness": 2.0},
    {"request_rate": 10.0, "arrival_smoothness": 2.0, "conditioned": True, "request_count": 9},
    {"request_rate": "inf", "request_count": 9, "duration_s": 5.0, "concurrency": 2},
    {"request_rate": "inf", "sessions": 9},
    {"request_rate_series": SERIES, "arrival_pattern": "constant", "duration_s": 90.0},
    {"request_rate_series": ((5.0, 1.0), (60.0, 1.0), (60.0, 20.0))},
    {"fixed_schedule": True, "fixed_schedule_start_ms": 5.0, "fixed_schedule_end_ms": 6.0, "concurrency": 3},
    {"fixed_schedule": True, "fixed_schedule_auto_offset": True, "fixed_schedule_end_ms": 6.0},
    {"user_centric_rate": 3.0, "users": 5, "sessions": 9},
    {"request_rate": 5.0, "request_rate_ramp_s": 9.0, "request_rate_ramp_start": 0.0},
    {"request_rate": 5.0, "request_rate_ramp_s": 9.0, "request_rate_ramp_strategy": "exponential"},
    {"request_rate": 5.0, "request_rate_ramp_s": 9.0, "request_rate_ramp_start": 50.0},
    {"concurrency": 9, "concurrency_ramp_s": 9.0, "concurrency_ramp_strategy": "exponential"},
    {"concurrency": 1, "concurrency_ramp_s": 9.0, "concurrency_ramp_start": 9},
    {"concurrency": 9, "prefill_concurrency": 3, "prefill_concurrency_ramp_s": 9.0},
    {"request_rate": 5.0, "prefill_concurrency": 3},
    {"request_rate": "inf", "arrival_smoothness": 1.0, "request_count": 9},
    BY_INDEX,
    {**BY_INDEX, "request_rate": "inf", "arrival_smoothness": 1.0},
    {**BY_INDEX, "index_ramp_strategy": "exponential", "arrival_smoothness": 2.0, "duration_s": 9.0},
    {"request_rate": 5.0, "concurrency": 2, "duration_s": 5.0, "drain_queue": True},
    {"request_rate": "inf", "request_count": 9, "prefill_concurrency": 2, "duration_s": 5.0, "drain_queue": True},
    {"cancellation_percent": 5.0, "cancellation_delay_s": 1.0},
    {"stop_when": {"request_latency": 2.0, "output_token_throughput": 1.0}, "duration_s": 60.0},
    {"request_count": 9, "sessions": 9, "duration_s": 9.0},
    {"warmup_request_count": 3, "warmup_duration_s": 5.0, "warmup_grace_s": 0.0, "warmup_handover": "seamless"},
]  # fmt: skip


@pytest.mark.parametrize("load", FITTING, ids=lambda load: ",".join(load) or "nothing")
def test_what_fits_passes_unchanged(load):
    config = Config(endpoint=STREAM, input=FILE, load=LoadConfig(**load))
    assert check(config) is config


def test_a_closed_loop_has_no_way():
    assert ways(LoadConfig(concurrency=3)) == []
    assert ways(LoadConfig(request_rate="inf")) == ["request_rate"]
    assert set(WAYS) <= set(LoadConfig.__struct_fields__)


@pytest.mark.parametrize("bound", [{"request_count": 1}, {"sessions": 1}, {"duration_s": 1.0}])
def test_any_end_bounds(bound):
    assert bounded(LoadConfig(**bound))
    assert not bounded(LoadConfig(concurrency=1))
