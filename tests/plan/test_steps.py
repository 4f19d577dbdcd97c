"""Slots over time."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadstone.plan import rate, steps

S = 1_000_000_000
SLOTS = st.integers(1, 300)
SPANS = st.floats(0.001, 10_000)
COURSES = st.sampled_from(["linear", "exponential"])


def area(found, until_ns):
    """Slot-seconds up to a moment behind the last step."""
    ends = [*found[1:], (until_ns, 0)]
    return sum(slots * (end_ns - at_ns) for (at_ns, slots), (end_ns, _) in zip(found, ends, strict=True)) / S


def at(found, moment_ns):
    return [slots for at_ns, slots in found if at_ns <= moment_ns][-1]


def test_a_ramp_changes_by_one_slot_where_the_line_passes_a_half():
    assert steps.ramp(1, 5, 4) == ((0, 1), (S // 2, 2), (S * 3 // 2, 3), (S * 5 // 2, 4), (S * 7 // 2, 5))
    assert steps.ramp(5, 1, 4) == ((0, 5), (S // 2, 4), (S * 3 // 2, 3), (S * 5 // 2, 2), (S * 7 // 2, 1))


def test_an_exponential_ramp_doubles_in_equal_times():
    found = steps.ramp(1, 16, 4, "exponential")
    assert [slots for _, slots in found] == list(range(1, 17))
    assert [at_ns for at_ns, _ in found[1:]] == [round(math.log2(k - 0.5) * S) for k in range(2, 17)]
    assert [at(found, t * S) for t in (0, 1, 2, 3, 4)] == [1, 2, 4, 8, 16]


def test_without_a_difference_there_is_one_step():
    assert steps.ramp(7, 7, 60) == steps.level(7) == ((0, 7),)


@given(SLOTS, SLOTS, SPANS, COURSES)
def test_a_ramp_goes_from_its_start_to_its_end_by_single_slots_within_its_span(start, end, span_s, course):
    found = steps.ramp(start, end, span_s, course)
    assert found[0] == (0, start)
    assert [slots for _, slots in found] == list(
        range(start, end + 1) if end >= start else range(start, end - 1, -1)
    )
    assert all(earlier < later for (earlier, _), (later, _) in pairwise(found))
    assert found[-1][0] <= span_s * S
    assert steps.most(found) == max(start, end)


@given(SLOTS, SLOTS, SPANS, COURSES)
def test_the_area_below_the_steps_is_that_below_the_ramp(start, end, span_s, course):
    found = steps.ramp(start, end, span_s, course)
    asked = rate.passed(rate.ramp(start, end, span_s, course), span_s)
    error = area(found, round(span_s * S)) / asked - 1
    assert error == pytest.approx(0, abs=1e-6 if course == "linear" else 0.06)
    if min(start, end) >= 10:
        assert error == pytest.approx(0, abs=0.001)


@given(SLOTS, SLOTS, SPANS, COURSES, st.floats(0, 1))
def test_at_every_moment_the_whole_number_next_to_the_ramp(start, end, span_s, course, part):
    found = steps.ramp(start, end, span_s, course)
    asked = start * (end / start) ** part if course == "exponential" else start + (end - start) * part
    assert abs(at(found, part * span_s * S) - asked) <= 0.5 + 1e-4 * abs(end - start)


def test_changes_within_one_nanosecond_are_one():
    found = steps.ramp(1, 1000, 1e-9)
    assert found[0][0] == 0
    assert found[-1] == (1, 1000)
    assert len({at_ns for at_ns, _ in found}) == len(found)


@pytest.mark.parametrize(
    ("slots", "workers", "parts"),
    [(8, 4, [2, 2, 2, 2]), (9, 4, [3, 2, 2, 2]), (3, 4, [1, 1, 1, 0]), (5, 1, [5])],
)
def test_a_number_is_shared_as_evenly_as_whole_numbers_allow(slots, workers, parts):
    found = [steps.share(steps.level(slots), worker, workers) for worker in range(workers)]
    assert found == [((0, part),) for part in parts]


def test_a_worker_hears_of_its_own_changes_only():
    ramp = ((0, 1), (10, 2), (20, 3), (30, 4), (40, 5))
    assert steps.share(ramp, 0, 2) == ((0, 1), (20, 2), (40, 3))
    assert steps.share(ramp, 1, 2) == ((0, 0), (10, 1), (30, 2))


@given(SLOTS, SLOTS, SPANS, COURSES, st.integers(1, 9))
def test_the_shares_add_up_at_every_moment_and_differ_by_one_at_most(start, end, span_s, course, workers):
    found = steps.ramp(start, end, span_s, course)
    shares = [steps.share(found, worker, workers) for worker in range(workers)]
    for at_ns, slots in found:
        parts = [at(own, at_ns) for own in shares]
        assert sum(parts) == slots
        assert max(parts) - min(parts) <= 1
    assert {at_ns for own in shares for at_ns, _ in own} == {at_ns for at_ns, _ in found}
    assert all(one != other for own in shares for (_, one), (_, other) in pairwise(own))
