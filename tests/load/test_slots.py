"""Which row goes next, on a clock of the test's own."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadstone.load.job import PhaseOrder
from loadstone.load.slots import Slots
from loadstone.plan.store import WHEN_A_SLOT_FREES, Row

START = 1_000


class Rows:
    """Rows given by their due times; `None` stands for a moment in which the plan has no further one yet."""

    def __init__(self, due_times):
        self._left = list(due_times)
        self._taken = 0
        self.starved = False

    def next(self):
        self.starved = bool(self._left) and self._left[0] is None
        if self.starved or not self._left:
            self._left = self._left[1:]
            return None
        self._taken += 1
        return Row(self._taken - 1, self._left.pop(0), 0, 0, -1, -1, 0, 0, 0)


def slots(due_times, cap, stop_ns=None):
    order = PhaseOrder(
        number=0, first_row=0, rows=None, start_ns=START, stop_ns=stop_ns, cut_ns=None, slots=cap
    )
    return Slots(order, Rows(due_times))


def launched(slots, now):
    """All launches there are at `now`, as (request, due)."""
    return [(launch.row.request, launch.due_ns) for launch in iter(lambda: slots.next(now), None)]


CLOSED = [WHEN_A_SLOT_FREES] * 4


def test_a_closed_loop_fills_its_slots_at_the_start():
    loop = slots(CLOSED, cap=3)
    assert launched(loop, START + 5) == [(0, START), (1, START), (2, START)]
    assert not loop.exhausted()


def test_a_row_of_a_closed_loop_is_due_when_its_slot_was_freed():
    loop = slots(CLOSED, cap=2)
    launched(loop, START)
    loop.free(START + 70)
    assert launched(loop, START + 90) == [(2, START + 70)]


def test_the_slot_that_was_freed_first_is_filled_first():
    loop = slots(CLOSED, cap=2)
    launched(loop, START)
    loop.free(START + 10)
    loop.free(START + 20)
    assert launched(loop, START + 30) == [(2, START + 10), (3, START + 20)]


def test_a_closed_loop_is_exhausted_once_a_free_slot_finds_no_row():
    loop = slots(CLOSED, cap=4)
    launched(loop, START)
    assert not loop.exhausted()
    loop.free(START + 1)
    assert launched(loop, START + 1) == []
    assert loop.exhausted()


def test_a_cap_without_slots_is_exhausted_from_the_start():
    assert slots(CLOSED, cap=0).exhausted()


def test_an_open_loop_launches_rows_when_they_are_due_whatever_is_under_way():
    loop = slots([0, 10, 20], cap=None)
    assert launched(loop, START + 9) == [(0, START)]
    assert loop.next_due_ns() == START + 10
    assert launched(loop, START + 25) == [(1, START + 10), (2, START + 20)]
    assert loop.exhausted()


def test_ends_do_not_matter_to_an_open_loop():
    loop = slots([0, 10], cap=None)
    launched(loop, START)
    for _ in range(3):
        loop.free(START + 1)
    assert launched(loop, START + 5) == []
    assert launched(loop, START + 10) == [(1, START + 10)]


def test_with_a_cap_a_row_that_is_due_waits_for_a_slot_in_its_turn():
    loop = slots([0, 10, 20, 30], cap=2)
    assert launched(loop, START + 50) == [(0, START), (1, START + 10)]
    loop.free(START + 60)
    assert launched(loop, START + 60) == [(2, START + 20)]


def test_with_a_cap_a_slot_holds_its_row_until_it_is_due():
    loop = slots([0, 100, 200], cap=2)
    assert launched(loop, START) == [(0, START)]
    assert (loop.next_due_ns(), loop.queued(START + 99), loop.queued(START + 100)) == (START + 100, 0, 1)
    assert launched(loop, START + 100) == [(1, START + 100)]
    assert loop.next_due_ns() is None


@pytest.mark.parametrize("cap", [None, 1, 3])
def test_a_row_due_at_the_stop_is_not_launched(cap):
    loop = slots([0, 99, 100, 101], cap, stop_ns=START + 100)
    assert launched(loop, START + 50) == [(0, START)]
    for _ in range(3):
        loop.free(START + 60)
    assert launched(loop, START + 99) == [(1, START + 99)]
    loop.free(START + 99)
    assert launched(loop, START + 99) == []
    assert loop.exhausted()


def test_what_waits_for_a_slot_at_the_stop_is_not_launched():
    loop = slots([0, 10], cap=1, stop_ns=START + 100)
    launched(loop, START)
    loop.free(START + 100)
    assert launched(loop, START + 100) == []
    assert loop.exhausted()


def test_an_open_loop_that_is_behind_still_sends_what_was_due_before_the_stop():
    loop = slots([0, 90, 95, 99, 100, 110], cap=None, stop_ns=START + 100)
    launched(loop, START)
    assert launched(loop, START + 105) == [(1, START + 90), (2, START + 95), (3, START + 99)]
    assert loop.exhausted()


@pytest.mark.parametrize("cap", [None, 2])
def test_stopping_drops_the_rows_that_wait_and_ends_the_phase(cap):
    loop = slots([0, 100, 200], cap)
    launched(loop, START)
    loop.stop(START + 50)
    assert launched(loop, START + 300) == []
    assert loop.exhausted()


@pytest.mark.parametrize("cap", [None, 2])
def test_after_the_stop_a_plan_that_is_behind_is_not_waited_for(cap):
    loop = slots([0, None, None], cap, stop_ns=START + 100)
    launched(loop, START)
    assert not loop.exhausted()
    assert launched(loop, START + 100) == []
    assert loop.exhausted()


def test_stopping_keeps_a_row_that_is_due_before_it():
    loop = slots([0, 40, 200], cap=None)
    launched(loop, START)
    loop.stop(START + 50)
    assert not loop.exhausted()
    assert launched(loop, START + 45) == [(1, START + 40)]
    launched(loop, START + 50)
    assert loop.exhausted()


def test_stopping_a_closed_loop_takes_effect_when_a_slot_frees():
    loop = slots(CLOSED, cap=1)
    launched(loop, START)
    loop.stop(START + 10)
    loop.free(START + 20)
    assert launched(loop, START + 20) == []
    assert loop.exhausted()


def test_clearing_drops_everything():
    loop = slots([0, 10, 20], cap=3)
    launched(loop, START)
    loop.clear()
    assert launched(loop, START + 100) == []
    assert loop.exhausted()


def test_a_plan_that_is_behind_is_waited_for_and_counted_once_a_stretch():
    loop = slots([-1, None, None, -1, None, -1], cap=1)
    assert launched(loop, START) == [(0, START)]
    loop.free(START + 1)
    assert loop.hungry()
    assert launched(loop, START + 2) == []
    assert (loop.starved, loop.hungry(), loop.exhausted()) == (1, False, False)
    assert launched(loop, START + 3) == []
    assert loop.starved == 1
    assert launched(loop, START + 4) == [(1, START + 1)]
    loop.free(START + 5)
    assert launched(loop, START + 6) == []
    assert loop.starved == 2


@given(
    gaps=st.lists(st.integers(0, 30), max_size=30),
    cap=st.none() | st.integers(1, 5),
    ticks=st.lists(st.tuples(st.integers(1, 40), st.integers(0, 3)), max_size=60),
)
def test_rows_go_once_in_order_never_early_and_never_above_the_cap(gaps, cap, ticks):
    due = [sum(gaps[: i + 1]) for i in range(len(gaps))]
    loop = slots(due, cap)
    now, flying, gone = START, 0, []
    for step, ends in [*ticks, *[(1_000, 5)] * (len(due) + 2)]:
        now += step
        for _ in range(min(ends, flying)):
            loop.free(now)
            flying -= 1
        for request, at in launched(loop, now):
            assert at == START + due[request] <= now
            gone.append(request)
            flying += 1
        assert cap is None or flying <= cap
    assert gone == list(range(len(due)))
    assert loop.exhausted()
