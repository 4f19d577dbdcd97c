"""A load that would send nothing, or counts what its data does not, is refused before anything is started."""

from __future__ import annotations

from itertools import count

import pytest

from loadstone.config import InputConfig, LoadConfig
from loadstone.errors import UsageError
from loadstone.plan import schedule
from loadstone.plan.fit import check_fit
from loadstone.plan.turn import Conversation, Turn

MS = 1_000_000
FILE = InputConfig(file="a.jsonl")
EPOCH_MS = 1_764_000_000_000


def endless():
    return (Conversation(id=number, turns=(Turn(),)) for number in count())


def recorded(*begins_ms, turns=1):
    """Conversations that begin at these times, each of so many turns."""
    later = (Turn(think_ns=1),) * (turns - 1)
    found = [Conversation(id=n, turns=(Turn(at_ns=at * MS), *later)) for n, at in enumerate(begins_ms)]
    return lambda: iter(found)


def fit(outlines=endless, data=InputConfig(), seed=1, **load):
    load = LoadConfig(**load)
    check_fit(load, schedule.phases(load, data), seed, outlines)


def refusal(*args, **load):
    with pytest.raises(UsageError) as refused:
        fit(*args, **load)
    return str(refused.value)


def test_a_ramp_that_comes_to_no_request_in_time():
    ramp = {"request_rate": 100.0, "request_rate_ramp_s": 1e9, "arrival_pattern": "gamma"}
    told = refusal(duration_s=1.0, **ramp)
    assert told.startswith("load.duration_s = 1: no request would be sent: the first one is due at ")
    assert told.endswith(" s. Give it more time, or a higher rate.")


def test_when_the_first_one_is_due_is_what_the_plan_says():
    load = {"request_rate": 0.5, "duration_s": 0.25, "arrival_pattern": "poisson"}
    phases = schedule.phases(LoadConfig(**load))
    for seed in range(30):
        due_ns = next(schedule.due_times(phases[0], seed))
        if due_ns < 250 * MS:
            fit(seed=seed, **load)
        else:
            assert f"is due at {due_ns / 1e9:.6g} s. Give" in refusal(seed=seed, **load)


def test_a_rate_that_never_comes_to_a_request():
    series = ((0.0, 0.001), (1.0, 0.0))
    assert refusal(request_rate_series=series, request_count=5) == (
        "load.request_rate_series: no request would be sent: the rate never comes to one."
    )


@pytest.mark.parametrize(
    "load",
    [
        {"duration_s": 0.001},
        {"request_rate": "inf", "request_count": 1},
        {"user_centric_rate": 1e-6, "users": 3, "duration_s": 1.0},
        {"request_rate": 1e-6, "conditioned": True, "request_count": 1},
        {"request_rate": 1e-6, "request_count": 1},
        {"request_rate": 1e-6, "arrival_pattern": "constant", "duration_s": 1.0},
    ],
)
def test_loads_that_send_something(load):
    fit(**load)


def test_of_several_measured_phases_one_may_be_silent():
    quiet = {"name": "quiet", "request_rate": 1e-6, "duration_s": 1}
    loud = {"name": "loud", "request_rate": 1000, "duration_s": 1}
    fit(phases=(quiet, loud))
    told = refusal(phases=(quiet, {**quiet, "name": "too"}))
    assert told.startswith("load.phases[0].duration_s = 1: no request would be sent: ")


def test_a_cooldown_may_be_silent():
    fit(request_rate=1e-6, arrival_pattern="constant", request_count=1, cooldown_duration_s=1.0)


def test_a_schedule_of_which_nothing_is_left():
    outlines = recorded(1000, 2500)
    assert refusal(outlines, FILE, fixed_schedule=True, fixed_schedule_start_ms=1e12) == (
        "load.fixed_schedule_start_ms = 1e+12: no request would be sent: the conversations begin from 1000 to 2500 ms."
    )
    assert refusal(outlines, FILE, fixed_schedule=True, fixed_schedule_end_ms=999.0) == (
        "load.fixed_schedule_end_ms = 999: no request would be sent: the conversations begin from 1000 to 2500 ms."
    )
    fit(outlines, FILE, fixed_schedule=True, fixed_schedule_start_ms=2500.0, fixed_schedule_end_ms=2501.0)


def test_timestamps_since_1970_want_the_offset():
    outlines = recorded(EPOCH_MS, EPOCH_MS + 5)
    assert refusal(outlines, FILE, fixed_schedule=True, duration_s=10.0) == (
        "load.duration_s = 10: no request would be sent: the first one is due at 1.764e+09 s."
        " --fixed-schedule-auto-offset begins with the first timestamp."
    )
    assert refusal(outlines, FILE, fixed_schedule=True) == (
        "load.fixed_schedule = true: the first request is due after 1,764,000,000 s."
        " --fixed-schedule-auto-offset begins with the first timestamp."
    )
    fit(outlines, FILE, fixed_schedule=True, fixed_schedule_auto_offset=True, duration_s=10.0)
    fit(recorded(86_399_999), FILE, fixed_schedule=True)


@pytest.mark.parametrize(
    "load",
    [
        {"conditioned": True, "request_rate": 5.0},
        {"index_ramp_strategy": "linear", "index_ramp_start": 1.0, "index_ramp_end": 9.0},
    ],
)
def test_what_counts_requests_is_for_a_file_of_single_turns(load):
    fit(recorded(0, 1), FILE, request_count=2, **load)
    assert refusal(recorded(0, 1, turns=2), FILE, request_count=2, **load) == (
        f"load.{next(iter(load))}: counts requests, so it is for conversations of one turn; the file has longer ones."
    )
