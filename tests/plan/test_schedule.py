"""What a load configuration means."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import count, islice, pairwise

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.plan.ks import exponential, gamma, p_value

from loadstone.config import InputConfig, LoadConfig
from loadstone.plan import rate, schedule, steps
from loadstone.plan.arrivals import IndexRamp
from loadstone.plan.rate import Segment
from loadstone.plan.schedule import ROWS_KEPT_FREE, Phase
from loadstone.plan.store import WHEN_A_SLOT_FREES
from loadstone.plan.turn import Conversation, Turn

S = 1_000_000_000
BY_INDEX = {"index_ramp_strategy": "linear", "index_ramp_start": 2.0, "index_ramp_end": 50.0}


def measured(**load):
    return schedule.phases(LoadConfig(**load))[-1]


def test_data_with_an_end_of_its_own_needs_no_count():
    [phase] = schedule.phases(LoadConfig(), InputConfig(file="trace.jsonl"))
    assert (phase.requests, phase.one_turn) == (None, False)
    [phase] = schedule.phases(LoadConfig(request_count=7), InputConfig(file="trace.jsonl"))
    assert phase.requests == 7


def test_where_answers_decide_when_turns_come_no_moment_is_known_at_which_all_are_sent():
    [phase] = schedule.phases(LoadConfig(request_rate=5.0), InputConfig(turns_mean=2.0))
    assert not phase.one_turn
    assert schedule.last_due_ns(phase, 1) is None


def listed(*tables, **load):
    return schedule.phases(LoadConfig(**load, phases=tables))


def times(phase, seed=1, n=20):
    return list(islice(schedule.due_times(phase, seed), n))


def talks(turns=1, **turn):
    """Endless conversations of so many turns."""
    return (Conversation(id=k, turns=(Turn(text="a", **turn),) * turns) for k in count())


def at(*times_ms):
    """Conversations of one turn each, with these timestamps."""
    return iter(
        [Conversation(id=k, turns=(Turn(text="a", at_ns=t * 1_000_000),)) for k, t in enumerate(times_ms)]
    )


def test_nothing_given_is_a_closed_loop_of_one_with_fifty_requests():
    assert schedule.phases(LoadConfig()) == [
        Phase(name="measured", kind="measured", pattern="closed", slots=1, slot_steps=((0, 1),), requests=50)
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
        ({"request_rate": "inf"}, 50),
        ({"request_rate_series": ((0.0, 1.0), (9.0, 2.0))}, 50),
        ({"user_centric_rate": 5.0, "users": 40}, 50),
        ({"request_count": 7, "concurrency": 400}, 7),
        ({"duration_s": 2.0, "concurrency": 400}, None),
        ({"duration_s": 2.0, "request_count": 9}, 9),
        ({"sessions": 9}, None),
        ({"fixed_schedule": True}, 50),
        ({"fixed_schedule": True, "request_count": 9}, 9),
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
        ({"request_rate": "inf"}, None),
        ({"request_rate": "inf", "concurrency": 8}, 8),
        ({"fixed_schedule": True}, None),
        ({"fixed_schedule": True, "concurrency": 8}, 8),
        ({"user_centric_rate": 5.0, "users": 40}, None),
    ],
)
def test_how_many_slots(load, slots):
    phase = measured(**load)
    assert phase.slots == slots
    assert phase.slot_steps == (() if slots is None else ((0, slots),))


def test_slots_that_change():
    phase = measured(concurrency=5, concurrency_ramp_s=4.0)
    assert (phase.slots, phase.slot_steps) == (5, steps.ramp(1, 5, 4.0))
    down = {"concurrency": 5, "concurrency_ramp_s": 4.0, "concurrency_ramp_start": 9}
    assert measured(**down).slots == 9
    assert measured(**down).slot_steps == steps.ramp(9, 5, 4.0)
    curved = measured(**down, concurrency_ramp_strategy="exponential")
    assert curved.slot_steps == steps.ramp(9, 5, 4.0, "exponential")


def test_prefill_slots_and_their_ramp():
    assert (measured(concurrency=9).prefill, measured(concurrency=9).prefill_steps) == (None, ())
    phase = measured(concurrency=9, prefill_concurrency=3)
    assert (phase.prefill, phase.prefill_steps) == (3, ((0, 3),))
    ramped = measured(concurrency=9, prefill_concurrency=3, prefill_concurrency_ramp_s=8.0)
    assert (ramped.prefill, ramped.prefill_steps) == (3, steps.ramp(1, 3, 8.0))
    assert ramped.slot_steps == ((0, 9),)


@pytest.mark.parametrize(
    ("load", "pattern"),
    [
        ({}, "closed"),
        ({"concurrency": 4}, "closed"),
        ({"request_rate": 2.0}, "poisson"),
        ({"request_rate": 2.0, "arrival_smoothness": 3.0}, "gamma"),
        ({"request_rate": 2.0, "arrival_pattern": "constant"}, "constant"),
        ({"request_rate": 2.0, "arrival_pattern": "gamma"}, "gamma"),
        ({"request_rate": 2.0, "concurrency": 4}, "poisson"),
        ({"request_rate": "inf"}, "burst"),
        ({"request_rate_series": ((0.0, 1.0),)}, "poisson"),
        ({"request_rate_series": ((0.0, 1.0),), "arrival_pattern": "constant"}, "constant"),
        ({"fixed_schedule": True}, "fixed"),
        ({"user_centric_rate": 5.0, "users": 40}, "users"),
        ({**BY_INDEX, "request_count": 9}, "by-index"),
    ],
)
def test_which_arrivals(load, pattern):
    phase = measured(**load)
    assert phase.pattern == pattern
    assert phase.timed == (pattern != "closed")


@pytest.mark.parametrize(
    ("load", "curve", "final"),
    [
        ({}, (), None),
        ({"request_rate": "inf"}, (), None),
        ({"fixed_schedule": True}, (), None),
        ({**BY_INDEX, "request_count": 9}, (), 50.0),
        ({"request_rate": 3.0}, rate.constant(3.0), 3.0),
        ({"user_centric_rate": 5.0, "users": 40}, rate.constant(5.0), 5.0),
        ({"request_rate": 3.0, "request_rate_ramp_s": 9.0}, rate.ramp(0.0, 3.0, 9.0), 3.0),
        (
            {"request_rate": 3.0, "request_rate_ramp_s": 9.0, "request_rate_ramp_start": 7.0},
            rate.ramp(7.0, 3.0, 9.0),
            3.0,
        ),
        (
            {"request_rate": 3.0, "request_rate_ramp_s": 9.0, "request_rate_ramp_strategy": "exponential"},
            rate.ramp(0.3, 3.0, 9.0, "exponential"),
            3.0,
        ),
        ({"request_rate_series": ((0.0, 1.0), (9.0, 2.0))}, rate.series([(0.0, 1.0), (9.0, 2.0)]), 2.0),
        ({"request_rate_series": ((0.0, 1.0), (9.0, 0.0))}, rate.series([(0.0, 1.0), (9.0, 0.0)]), 0.0),
    ],
)
def test_the_rate_over_time_and_what_it_comes_to(load, curve, final):
    phase = measured(**load)
    assert (phase.curve, phase.rate) == (curve, final)


def test_smoothness_is_that_of_gamma_gaps():
    assert measured(request_rate=2.0).smoothness is None
    assert measured(request_rate=2.0, arrival_pattern="gamma").smoothness == 1.0
    assert measured(request_rate=2.0, arrival_smoothness=3.0).smoothness == 3.0
    assert measured(**BY_INDEX, request_count=9, arrival_smoothness=3.0).smoothness == 3.0


def test_a_ramp_by_index():
    phase = measured(**BY_INDEX, request_count=9)
    assert phase.index_ramp == IndexRamp(start=2.0, end=50.0, course="linear")
    assert measured(request_rate=2.0).index_ramp is None


@pytest.mark.parametrize(
    ("load", "origin_ns", "latest_ns"),
    [
        ({}, 0, None),
        ({"fixed_schedule_start_ms": 1.5}, 1_500_000, None),
        ({"fixed_schedule_end_ms": 2.5}, 0, 2_500_000),
        ({"fixed_schedule_auto_offset": True}, None, None),
    ],
)
def test_which_of_the_given_times(load, origin_ns, latest_ns):
    phase = measured(fixed_schedule=True, **load)
    assert (phase.origin_ns, phase.latest_ns) == (origin_ns, latest_ns)


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


def test_what_is_cancelled_and_what_is_drained():
    phase = measured(cancellation_percent=5.0, cancellation_delay_s=0.25)
    assert (phase.cancelled_share, phase.cancel_after_ns) == (0.05, S // 4)
    assert measured(request_rate=2.0, concurrency=1, duration_s=9.0, drain_queue=True).drain_queue
    assert not measured(request_rate=2.0, concurrency=1, duration_s=9.0).drain_queue


def test_the_warm_up_comes_first_in_the_same_shape_and_ends_by_its_count():
    load = LoadConfig(request_rate=3.0, concurrency=5, duration_s=9.0, grace_s=1.0, warmup_request_count=4)
    warmup, phase = schedule.phases(load)
    assert (warmup.name, warmup.kind, warmup.requests) == ("warmup", "warmup", 4)
    assert (warmup.duration_ns, warmup.grace_ns) == (None, None)
    assert (warmup.pattern, warmup.curve, warmup.slots) == (phase.pattern, phase.curve, phase.slots)
    assert (phase.name, phase.kind, phase.requests, phase.duration_ns) == (
        "measured",
        "measured",
        None,
        9 * S,
    )
    assert (phase.first_row, phase.seamless) == (4, False)


def test_a_warm_up_by_duration_waits_for_all_its_answers_unless_told_otherwise():
    warmup, _ = schedule.phases(LoadConfig(warmup_duration_s=2.0))
    assert (warmup.requests, warmup.sessions, warmup.duration_ns, warmup.grace_ns) == (
        None,
        None,
        2 * S,
        None,
    )
    warmup, _ = schedule.phases(LoadConfig(warmup_duration_s=2.0, warmup_grace_s=1.0))
    assert warmup.grace_ns == S


def test_a_warm_up_by_sessions():
    warmup, _ = schedule.phases(LoadConfig(warmup_sessions=3))
    assert (warmup.requests, warmup.sessions) == (None, 3)


def test_a_warm_up_with_a_shape_of_its_own():
    warmup, phase = schedule.phases(
        LoadConfig(
            request_rate=3.0,
            concurrency=5,
            warmup_request_count=4,
            warmup_request_rate=1.0,
            warmup_concurrency=2,
            warmup_arrival_pattern="constant",
        )
    )
    assert (warmup.pattern, warmup.rate, warmup.slots) == ("constant", 1.0, 2)
    assert (phase.pattern, phase.rate, phase.slots) == ("poisson", 3.0, 5)


def test_a_warm_up_has_no_ramps_but_its_own():
    ramps = {"request_rate": 3.0, "request_rate_ramp_s": 9.0, "concurrency": 5, "concurrency_ramp_s": 8.0}
    warmup, phase = schedule.phases(LoadConfig(**ramps, warmup_request_count=4))
    assert (warmup.curve, warmup.slot_steps) == (rate.constant(3.0), ((0, 5),))
    assert (phase.curve, phase.slot_steps) == (rate.ramp(0.0, 3.0, 9.0), steps.ramp(1, 5, 8.0))
    warmup, _ = schedule.phases(LoadConfig(**ramps, warmup_request_count=4, warmup_concurrency_ramp_s=2.0))
    assert (warmup.curve, warmup.slot_steps) == (rate.constant(3.0), steps.ramp(1, 5, 2.0))


def test_a_seamless_hand_over_is_of_the_phase_that_begins():
    warmup, phase = schedule.phases(LoadConfig(warmup_request_count=4, warmup_handover="seamless"))
    assert (warmup.seamless, phase.seamless) == (False, True)


def test_a_cooldown_is_seamless_and_keeps_what_the_measured_load_came_to():
    ramps = {"request_rate": 3.0, "request_rate_ramp_s": 9.0, "concurrency": 5, "concurrency_ramp_s": 8.0}
    phase, cooldown = schedule.phases(LoadConfig(**ramps, request_count=20, cooldown_duration_s=2.0))
    assert (cooldown.name, cooldown.kind, cooldown.seamless) == ("cooldown", "cooldown", True)
    assert (cooldown.curve, cooldown.slot_steps) == (rate.constant(3.0), ((0, 5),))
    assert (cooldown.requests, cooldown.duration_ns, cooldown.first_row) == (None, 2 * S, 20)
    assert (phase.kind, phase.requests) == ("measured", 20)


@pytest.mark.parametrize(
    ("load", "level"), [({"request_rate_series": ((0.0, 1.0), (9.0, 7.0))}, 7.0), (BY_INDEX, 50.0)]
)
def test_a_cooldown_by_requests_at_the_last_rate(load, level):
    *_, cooldown = schedule.phases(LoadConfig(**load, request_count=9, cooldown_request_count=6))
    assert (cooldown.pattern, cooldown.curve, cooldown.requests) == ("poisson", rate.constant(level), 6)


def test_phases_from_a_file_are_the_load_with_what_differs():
    found = listed(
        {"name": "heat", "kind": "warmup", "request_count": 10},
        {"name": "low", "duration_s": 5.0},
        {"name": "high", "duration_s": 5.0, "request_rate": 9.0, "handover": "seamless"},
        {"name": "cold", "kind": "cooldown", "duration_s": 1.0, "handover": "seamless"},
        request_rate=2.0,
    )
    assert [(p.name, p.kind, p.seamless, p.rate) for p in found] == [
        ("heat", "warmup", False, 2.0),
        ("low", "measured", False, 2.0),
        ("high", "measured", True, 9.0),
        ("cold", "cooldown", True, 2.0),
    ]
    assert [p.first_row for p in found] == [0, 10, 10 + ROWS_KEPT_FREE, 10 + 2 * ROWS_KEPT_FREE]
    assert [p.grace_ns for p in found] == [None, 30 * S, 30 * S, 30 * S]


def test_rows_are_numbered_through_and_kept_free_where_nobody_knows_how_many_there_are():
    found = listed(
        {"name": "a", "request_count": 7},
        {"name": "b", "sessions": 7},
        {"name": "c", "sessions": 7, "request_count": 3},
        {"name": "d", "duration_s": 7.0, "request_count": 3},
        {"name": "e"},
        {"name": "f"},
    )
    gaps = [b.first_row - a.first_row for a, b in pairwise(found)]
    assert gaps == [7, ROWS_KEPT_FREE, ROWS_KEPT_FREE, 3, 50]


def test_a_phase_is_data():
    for phase in schedule.phases(LoadConfig(request_rate=3.0, request_rate_ramp_s=9.0, warmup_sessions=3)):
        assert msgspec.json.decode(msgspec.json.encode(phase), type=Phase) == phase


def test_a_closed_loop_has_no_due_times():
    assert times(measured(concurrency=3), n=3) == [WHEN_A_SLOT_FREES] * 3


def test_a_burst_is_all_at_once():
    assert times(measured(request_rate="inf"), n=3) == [0, 0, 0]


def test_constant_due_times():
    phase = measured(request_rate=4.0, arrival_pattern="constant")
    assert times(phase, n=4) == [0, S // 4, S // 2, S * 3 // 4]


DRAWN = [
    {"request_rate": 4.0},
    {"request_rate": 4.0, "arrival_smoothness": 2.0},
    {"request_rate": 4.0, "request_rate_ramp_s": 9.0},
    {"request_rate_series": ((0.0, 1.0), (9.0, 7.0))},
    {"request_rate": 4.0, "conditioned": True, "request_count": 30},
    {**BY_INDEX, "request_count": 30},
]


@pytest.mark.parametrize("load", DRAWN)
def test_drawn_due_times_depend_on_seed_and_phase_only(load):
    one, other = listed({"name": "one"}, {"name": "measured"}, **load)
    assert times(other, 1) == times(measured(**load), 1)
    assert len({tuple(times(p, seed)) for p in (one, other) for seed in (1, 2)}) == 4


def test_smoothness_one_half_and_two_are_not_the_same_process():
    one, other = (measured(request_rate=4.0, arrival_smoothness=s) for s in (0.5, 2.0))
    assert times(one) != times(other)


def unit_gaps(phase, seed, n):
    """The area below the rate between an arrival and the next."""
    areas = [0.0, *(rate.passed(phase.curve, t / S) for t in times(phase, seed, n))]
    return [b - a for a, b in pairwise(areas)]


def correlation(one, other):
    mean, other_mean = sum(one) / len(one), sum(other) / len(other)
    top = sum((a - mean) * (b - other_mean) for a, b in zip(one, other, strict=True))
    return top / math.sqrt(sum((a - mean) ** 2 for a in one) * sum((b - other_mean) ** 2 for b in other))


@pytest.mark.parametrize("load", DRAWN[:4])
def test_the_arrivals_of_two_phases_are_independent(load):
    n = 4_000
    gaps = [unit_gaps(p, 7, n + 1) for p in listed({"name": "one"}, {"name": "two"}, **load)]
    for shifted in (0, 1):
        assert abs(correlation(gaps[0][:n], gaps[1][shifted : n + shifted])) < 4 / math.sqrt(n)
    assert abs(correlation(gaps[0][:n], gaps[0][1:])) < 4 / math.sqrt(n)


@pytest.mark.parametrize("load", DRAWN[:4])
@pytest.mark.parametrize("seed", [1, 2])
def test_the_gaps_of_a_plan_have_their_distribution(load, seed):
    expected = gamma(2.0) if "arrival_smoothness" in load else exponential()
    assert p_value(unit_gaps(measured(**load), seed, 5_000), expected) > 0.001


@pytest.mark.parametrize("smoothness", [0.25, 1.0, 9.0])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_mean_rate_of_a_plan_is_the_one_asked_for(smoothness, seed):
    n, asked = 10_000, 37.0
    last = times(measured(request_rate=asked, arrival_smoothness=smoothness), seed, n)[-1]
    assert n / (last / S) / asked == pytest.approx(1, abs=4 / math.sqrt(smoothness * n))


@given(st.integers(0, 2**63 - 1), st.integers(1, 40), st.integers(1, 40), st.sampled_from(DRAWN[:4]))
def test_more_requests_leave_the_first_ones_where_they_were(seed, n, more, load):
    few, many = (measured(**load, request_count=count) for count in (n, n + more))
    dues = [
        [one.due_ns[0] for one in schedule.dated(p, seed, islice(talks(), p.requests))] for p in (few, many)
    ]
    assert dues[0] == dues[1][:n]


@pytest.mark.parametrize("asked", [0.5, 3.0, 7.0, 1_000.0])
@pytest.mark.parametrize("load", [{}, {"arrival_smoothness": 0.5}])
def test_conditioned_the_last_of_n_is_due_at_n_over_rate_exactly(asked, load):
    phase = measured(request_rate=asked, conditioned=True, request_count=301, **load)
    found = times(phase, n=1_000)
    assert len(found) == 301
    assert found[-1] == round(Fraction(301 * S) / Fraction(asked)) == schedule.last_due_ns(phase, 1)
    assert times(measured(request_rate=asked, request_count=301, **load), n=301)[-1] != found[-1]


def test_by_index_there_are_as_many_arrivals_as_requests():
    assert len(times(measured(**BY_INDEX, request_count=40), n=99)) == 40


@pytest.mark.parametrize(("asked", "duration_s"), [(50.0, 30.0), (3.0, 10.0), (4_000.0, 0.25)])
def test_a_constant_rate_sends_exactly_as_many_as_it_comes_to(asked, duration_s):
    phase = measured(request_rate=asked, arrival_pattern="constant", duration_s=duration_s)
    assert sum(1 for _ in schedule.dated(phase, 1, talks())) == asked * duration_s


@pytest.mark.parametrize(
    "load",
    [
        {"request_rate": 40.0, "request_rate_ramp_s": 20.0},
        {"request_rate": 4.0, "request_rate_ramp_s": 20.0, "request_rate_ramp_start": 60.0},
        {"request_rate": 40.0, "request_rate_ramp_s": 20.0, "request_rate_ramp_strategy": "exponential"},
        {"request_rate_series": ((0.0, 5.0), (10.0, 50.0), (12.0, 0.0), (20.0, 30.0))},
    ],
)
@pytest.mark.parametrize("duration_s", [7.0, 25.0])
def test_a_ramp_sends_as_many_as_the_area_below_it(load, duration_s):
    phase = measured(**load, arrival_pattern="constant", duration_s=duration_s)
    sent = sum(1 for _ in schedule.dated(phase, 1, talks()))
    assert sent == pytest.approx(rate.passed(phase.curve, duration_s), abs=1)


def test_a_conversation_arrives_once_and_its_turns_follow():
    phase = measured(request_rate=2.0, arrival_pattern="constant")
    found = list(islice(schedule.dated(phase, 1, talks(3, think_ns=7)), 2))
    assert [(one.first_turn, one.due_ns, one.follows) for one in found] == [
        (0, (0, 7, 7), (0, 1, 1)),
        (0, (S // 2, 7, 7), (0, 1, 1)),
    ]
    closed = next(schedule.dated(measured(), 1, talks(2, think_ns=7)))
    assert (closed.due_ns, closed.follows) == ((WHEN_A_SLOT_FREES, 7), (0, 1))


def test_sessions_end_it():
    for load in ({}, {"request_rate": 2.0}, {"user_centric_rate": 5.0, "users": 3}):
        assert sum(1 for _ in schedule.dated(measured(**load, sessions=4), 1, talks(2))) == 4


def test_a_rate_that_ends_at_0_ends_it():
    series = ((0.0, 10.0), (2.0, 10.0), (4.0, 0.0))
    phase = measured(request_rate_series=series, arrival_pattern="constant", duration_s=99.0)
    assert sum(1 for _ in schedule.dated(phase, 1, talks())) == 30


def test_a_closed_loop_goes_on_until_its_time_is_over():
    assert len(list(islice(schedule.dated(measured(duration_s=0.001), 1, talks()), 9))) == 9


@pytest.mark.parametrize("load", [{"fixed_schedule": True}, {"user_centric_rate": 5.0, "users": 3}])
def test_arrivals_that_depend_on_the_conversations_are_not_to_be_had_without(load):
    with pytest.raises(ValueError, match="measured: when conversations begin"):
        schedule.due_times(measured(**load), 1)


def test_given_times():
    phase = measured(fixed_schedule=True, fixed_schedule_start_ms=20, fixed_schedule_end_ms=90)
    found = schedule.dated(phase, 1, at(0, 20, 25, 90, 91))
    assert [(one.conversation.id, one.due_ns) for one in found] == [
        (1, (0,)),
        (2, (5_000_000,)),
        (3, (70_000_000,)),
    ]


def test_given_times_within_a_duration():
    phase = measured(fixed_schedule=True, fixed_schedule_auto_offset=True, duration_s=0.05)
    assert [one.due_ns for one in schedule.dated(phase, 1, at(1000, 1049, 1050, 1051))] == [
        (0,),
        (49_000_000,),
    ]


def test_users_are_under_way_from_the_start():
    phase = measured(user_centric_rate=2.0, users=2, duration_s=9.0)
    found = list(schedule.dated(phase, 1, talks(2)))
    assert [(one.first_turn, one.due_ns) for one in found[:3]] == [
        (0, (0, S)),
        (1, (S // 2,)),
        (0, (S * 3 // 2, S * 5 // 2)),
    ]
    assert sum(due < 9 * S for one in found for due in one.due_ns) == 18
    assert all(one.due_ns[0] < 9 * S for one in found)


@pytest.mark.parametrize(
    ("load", "last_ns"),
    [
        ({"request_rate": 4.0, "arrival_pattern": "constant", "request_count": 9}, 2 * S),
        ({"request_rate": "inf", "request_count": 9}, 0),
        ({"request_count": 9}, None),
        ({"request_rate": 4.0, "duration_s": 9.0}, None),
        ({"fixed_schedule": True, "request_count": 9}, None),
        ({"user_centric_rate": 5.0, "users": 3, "request_count": 9}, None),
    ],
)
def test_when_the_last_of_the_requests_has_arrived(load, last_ns):
    assert schedule.last_due_ns(measured(**load), 1) == last_ns


def test_the_last_that_arrives_where_the_rate_ends_before_the_count():
    series = ((0.0, 10.0), (2.0, 10.0), (2.1, 0.0))
    phase = measured(request_rate_series=series, arrival_pattern="constant", request_count=99)
    assert schedule.last_due_ns(phase, 1) == times(phase, n=99)[-1] < 2.1 * S
    never = msgspec.structs.replace(phase, curve=(Segment(start_s=0.0, rate=0.0, end_rate=0.0),))
    assert schedule.last_due_ns(never, 1) is None


def test_the_last_of_drawn_arrivals_is_that_of_the_plan():
    phase = measured(request_rate=4.0, request_count=30)
    assert schedule.last_due_ns(phase, 5) == times(phase, 5, 30)[-1]
