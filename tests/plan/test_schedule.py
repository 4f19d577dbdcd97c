"""What a load configuration means."""

from __future__ import annotations

from itertools import islice

import pytest

from loadstone.config import LoadConfig
from loadstone.plan import schedule
from loadstone.plan.schedule import Phase
from loadstone.plan.store import WHEN_A_SLOT_FREES

S = 1_000_000_000


def measured(**load):
    return schedule.phases(LoadConfig(**load))[-1]


def times(phase, seed=1, n=20):
    return list(islice(schedule.due_times(phase, seed), n))


def test_nothing_given_is_a_closed_loop_of_one_with_fifty_requests():
    assert schedule.phases(LoadConfig()) == [
        Phase(
            name="measured",
            pattern="closed",
            rate=None,
            smoothness=1.0,
            slots=1,
            requests=50,
            duration_ns=None,
            grace_ns=None,
        )
    ]


@pytest.mark.parametrize(
    ("load", "requests"),
    [
        ({"concurrency": 10}, 50),
        ({"concurrency": 25}, 50),
        ({"concurrency": 26}, 52),
        ({"concurrency": 400}, 800),
        ({"request_rate": 5.0}, 50),
        ({"request_rate": 5.0, "concurrency": 40}, 80),
        ({"request_count": 7, "concurrency": 400}, 7),
        ({"duration_s": 2.0, "concurrency": 400}, None),
        ({"duration_s": 2.0, "request_count": 9}, 9),
    ],
)
def test_how_many_requests(load, requests):
    assert measured(**load).requests == requests


@pytest.mark.parametrize(
    ("load", "slots"),
    [
        ({}, 1),
        ({"concurrency": 8}, 8),
        ({"request_rate": 1.0}, None),
        ({"request_rate": 1.0, "concurrency": 8}, 8),
    ],
)
def test_how_many_slots(load, slots):
    assert measured(**load).slots == slots


@pytest.mark.parametrize(
    ("load", "pattern"),
    [
        ({}, "closed"),
        ({"request_rate": 2.0}, "poisson"),
        ({"request_rate": 2.0, "arrival_smoothness": 3.0}, "gamma"),
        ({"request_rate": 2.0, "arrival_pattern": "constant"}, "constant"),
        ({"request_rate": 2.0, "arrival_pattern": "gamma"}, "gamma"),
        ({"request_rate": 2.0, "concurrency": 4}, "poisson"),
    ],
)
def test_which_arrivals(load, pattern):
    assert measured(**load).pattern == pattern


@pytest.mark.parametrize(
    ("load", "duration_ns", "grace_ns"),
    [
        ({}, None, None),
        ({"duration_s": 1.5}, S * 3 // 2, 30 * S),
        ({"duration_s": 1.5, "grace_s": 0.0}, S * 3 // 2, 0),
        ({"duration_s": 1.5, "grace_s": 2.0}, S * 3 // 2, 2 * S),
    ],
)
def test_duration_and_grace(load, duration_ns, grace_ns):
    phase = measured(**load)
    assert (phase.duration_ns, phase.grace_ns) == (duration_ns, grace_ns)


def test_the_warm_up_comes_first_in_the_same_shape_and_ends_by_its_count():
    load = LoadConfig(request_rate=3.0, concurrency=5, duration_s=9.0, grace_s=1.0, warmup_request_count=4)
    warmup, phase = schedule.phases(load)
    assert (warmup.name, warmup.requests, warmup.duration_ns, warmup.grace_ns) == ("warmup", 4, None, None)
    assert (warmup.pattern, warmup.rate, warmup.slots) == (phase.pattern, phase.rate, phase.slots)
    assert (phase.name, phase.requests, phase.duration_ns) == ("measured", None, 9 * S)


def test_a_closed_loop_has_no_due_times():
    assert times(measured(concurrency=3), n=3) == [WHEN_A_SLOT_FREES] * 3


def test_constant_due_times():
    phase = measured(request_rate=4.0, arrival_pattern="constant")
    assert times(phase, n=4) == [0, S // 4, S // 2, S * 3 // 4]


@pytest.mark.parametrize("load", [{"request_rate": 4.0}, {"request_rate": 4.0, "arrival_smoothness": 2.0}])
def test_drawn_due_times_depend_on_seed_and_phase_only(load):
    warmup, phase = schedule.phases(LoadConfig(**load, warmup_request_count=9))
    assert times(phase, 1) == times(measured(**load), 1)
    assert len({tuple(times(p, seed)) for p in (warmup, phase) for seed in (1, 2)}) == 4


def test_smoothness_one_half_and_two_are_not_the_same_process():
    one, other = (measured(request_rate=4.0, arrival_smoothness=s) for s in (0.5, 2.0))
    assert times(one) != times(other)
