"""Which row goes next, on a clock of the test's own."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadstone.load.capacity import NEVER_NS, Capacity
from loadstone.load.job import PhaseOrder
from loadstone.load.slots import Slots
from loadstone.plan.store import WHEN_A_SLOT_FREES, Row

START = 1_000
REST_NS = 500


class Rows:
    """Rows given by their due times or as rows; `None` stands for a moment in which the plan has no further one yet."""

    def __init__(self, given):
        self._left = list(given)
        self._taken = []
        self.starved = False
        self.wanted = 0
        self.taken_by_others = True

    def next(self):
        while self._left:
            self.starved = self._left[0] is None
            given = self._left.pop(0)
            if self.starved:
                return None
            self._taken.append(self._row(given))
            if self._taken[-1].opens:
                return self._taken[-1]
        self.starved = False
        return None

    def over(self):
        return self.taken_by_others

    def after(self, row):
        following = [given for given in self._left if given is not None]
        later = [*self._taken, *following][row.request + 1]
        return self._row(later, row.request + 1)

    def _row(self, given, request=None):
        request = len(self._taken) if request is None else request
        if isinstance(given, Row):
            return given._replace(request=request)
        return Row(request, given, 0, 2, -1, -1, request, 0, 0)


def turns(*due_times, follows=1):
    """A conversation: the due time of the first turn, then those of the later ones, or think times."""
    last = len(due_times) - 1
    return [
        Row(0, due, 0, 2, -1, -1, 0, i, 0, int(i == last), follows=int(follows and i > 0), opens=int(not i))
        for i, due in enumerate(due_times)
    ]


class Loop(Slots):
    """Slots whose flights free their place when the test says so."""

    def free(self, at_ns, rest_ns=0):
        if self.capped:
            self.places.give(at_ns, rest_ns)


def slots(due_times, cap, stop_ns=None, prefill=None, drain=False, grace_ns=None):
    def steps(level):
        return ((0, level),) if isinstance(level, int) else level

    order = PhaseOrder(
        number=0,
        rows_fd=-1,
        first_row=0,
        duration_ns=None if stop_ns is None else stop_ns - START,
        grace_ns=grace_ns,
        slots=steps(cap),
        prefill=steps(prefill),
        drain_queue=drain,
    )
    places, begun = Capacity(), Capacity()
    places.reset(order.slots, START)
    begun.reset(order.prefill, START)
    loop = Loop(order, START, Rows(due_times), places, begun)
    loop.places, loop.prefill = places, begun
    return loop


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
    loop = slots(CLOSED, cap=0)
    assert launched(loop, START) == []
    assert loop.exhausted()


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
    assert loop.next_due_ns() == NEVER_NS


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
    loop.stop(START + 50, NEVER_NS, START + 50)
    assert launched(loop, START + 300) == []
    assert loop.exhausted()


@pytest.mark.parametrize("cap", [None, 2])
def test_after_the_stop_a_plan_that_is_behind_is_not_waited_for(cap):
    loop = slots([0, None, None], cap, stop_ns=START + 100)
    launched(loop, START)
    assert not loop.exhausted()
    assert launched(loop, START + 100) == []
    assert loop.exhausted()


@pytest.mark.parametrize("cap", [None, 2])
def test_nothing_is_launched_from_the_moment_on_at_which_all_is_cancelled(cap):
    loop = slots([0, 10, 20], cap)
    launched(loop, START)
    loop.stop(START + 50, START + 60, START + 5)
    assert launched(loop, START + 60) == []
    assert not loop.hungry()
    assert loop.closed(START + 60)


def test_a_grace_bounds_what_an_open_loop_that_is_behind_still_sends():
    loop = slots([0, 90, 95], cap=None, stop_ns=START + 100, grace_ns=30)
    launched(loop, START)
    assert [request for request, _ in launched(loop, START + 129)] == [1, 2]
    loop = slots([0, 90, 95], cap=None, stop_ns=START + 100, grace_ns=30)
    launched(loop, START)
    assert launched(loop, START + 130) == []


def test_stopping_keeps_a_row_that_is_due_before_it():
    loop = slots([0, 40, 200], cap=None)
    launched(loop, START)
    loop.stop(START + 50, NEVER_NS, START + 50)
    assert not loop.exhausted()
    assert launched(loop, START + 45) == [(1, START + 40)]
    launched(loop, START + 50)
    assert loop.exhausted()


def test_stopping_a_closed_loop_takes_effect_when_a_slot_frees():
    loop = slots(CLOSED, cap=1)
    launched(loop, START)
    loop.stop(START + 10, NEVER_NS, START + 10)
    loop.free(START + 20)
    assert launched(loop, START + 20) == []
    assert loop.exhausted()


def test_clearing_drops_everything():
    loop = slots([0, 10, 20], cap=3)
    launched(loop, START)
    loop.clear(START)
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


def test_a_slot_rests_after_a_request_that_got_no_answer():
    loop = slots(CLOSED, cap=1)
    launched(loop, START)
    loop.free(START + 10, REST_NS)
    assert launched(loop, START + 9 + REST_NS) == []
    assert loop.next_due_ns() == START + 10 + REST_NS
    assert launched(loop, START + 10 + REST_NS) == [(1, START + 10 + REST_NS)]


def test_slots_come_and_go_by_steps():
    loop = slots([WHEN_A_SLOT_FREES] * 9, cap=((0, 1), (100, 3), (200, 1)))
    assert launched(loop, START + 50) == [(0, START)]
    assert loop.next_due_ns() == START + 100
    assert launched(loop, START + 101) == [(1, START + 100), (2, START + 100)]
    assert launched(loop, START + 200) == []
    loop.free(START + 210)
    loop.free(START + 220)
    assert launched(loop, START + 221) == []
    loop.free(START + 230)
    assert launched(loop, START + 231) == [(3, START + 230)]


def test_a_loop_whose_slots_have_all_gone_is_exhausted_when_the_others_have_taken_all():
    loop = slots([WHEN_A_SLOT_FREES] * 9, cap=((0, 1), (100, 0)))
    loop._rows.taken_by_others = False
    launched(loop, START)
    assert launched(loop, START + 100) == []
    assert not loop.spent()
    loop._rows.taken_by_others = True
    assert launched(loop, START + 120) == []
    assert loop.exhausted()


@pytest.mark.parametrize("cap", [2, None])
def test_without_any_prefill_place_a_phase_ends_when_the_others_have_taken_all(cap):
    loop = slots([0] * 4, cap, prefill=0)
    assert launched(loop, START) == []
    assert loop.exhausted()


def test_rows_let_go_are_told():
    loop = slots([*turns(0, 50), *turns(100)], cap=2)
    first = loop.next(START)
    loop.next(START)
    loop.follow(first.row, START + 10)
    loop.clear(START + 20)
    assert [(row.request, row.opens) for row in loop.gone] == [(1, 0), (2, 1)]
    assert loop.places.taken == 1


# ---- prefill ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("cap", "due"), [(4, WHEN_A_SLOT_FREES), (4, 0), (None, 0)])
def test_no_more_are_before_their_first_token_than_may_be(cap, due):
    loop = slots([due] * 4, cap, prefill=2)
    assert [request for request, _ in launched(loop, START)] == [0, 1]
    assert not loop.hungry()
    assert loop.next_due_ns() == NEVER_NS
    loop.prefill.give(START + 30)
    assert launched(loop, START + 31) == [(2, START)]
    assert launched(loop, START + 32) == []


def test_what_waits_for_a_prefill_place_at_the_stop_is_not_launched():
    loop = slots([0, 1, 2], cap=None, prefill=1, stop_ns=START + 50)
    launched(loop, START + 3)
    assert launched(loop, START + 50) == []
    loop.prefill.give(START + 51)
    assert launched(loop, START + 51) == []
    assert loop.exhausted()


# ---- draining the queue -------------------------------------------------------------------------------


def test_a_queue_that_is_drained_is_launched_after_the_stop_but_nothing_due_later():
    loop = slots([0, 10, 20, 60], cap=1, stop_ns=START + 50, drain=True)
    launched(loop, START)
    loop.free(START + 70)
    assert launched(loop, START + 70) == [(1, START + 10)]
    loop.free(START + 90)
    assert launched(loop, START + 90) == [(2, START + 20)]
    assert not loop.closed(START + 90)
    loop.free(START + 95)
    assert launched(loop, START + 95) == []
    assert loop.exhausted()


def test_a_stop_before_its_time_ends_the_draining_too():
    loop = slots([0, 10], cap=1, stop_ns=START + 50, drain=True)
    launched(loop, START)
    loop.stop(START + 60, NEVER_NS, START + 60)
    loop.free(START + 70)
    assert launched(loop, START + 70) == []
    assert loop.exhausted()


# ---- conversations ------------------------------------------------------------------------------------


@pytest.mark.parametrize("cap", [1, None])
def test_a_later_turn_is_due_after_the_end_of_the_turn_before_it_and_a_think_time(cap):
    loop = slots(turns(0, 30, 0), cap)
    [first] = [loop.next(START)]
    assert loop.follow(first.row, START + 100)
    assert loop.next_due_ns() == START + 130
    assert loop.next(START + 129) is None
    second = loop.next(START + 140)
    assert (second.row.turn, second.due_ns) == (1, START + 130)
    assert loop.follow(second.row, START + 200)
    third = loop.next(START + 200)
    assert (third.row.turn, third.due_ns) == (2, START + 200)
    assert not loop.follow(third.row, START + 300)


def test_a_conversation_keeps_its_slot_while_it_thinks():
    loop = slots([*turns(WHEN_A_SLOT_FREES, 50), *turns(WHEN_A_SLOT_FREES)], cap=1)
    first = loop.next(START)
    loop.follow(first.row, START + 10)
    assert loop.next(START + 20) is None
    second = loop.next(START + 60)
    assert second.row.request == 1
    assert not loop.follow(second.row, START + 70)
    loop.free(START + 70)
    assert loop.next(START + 70).row.request == 2


def test_a_turn_with_a_due_time_of_its_own_is_late_when_the_turn_before_it_is():
    loop = slots(turns(0, 50, follows=0), cap=None)
    first = loop.next(START)
    assert loop.follow(first.row, START + 80)
    assert loop.next(START + 80).due_ns == START + 50


@pytest.mark.parametrize("cap", [1, None])
def test_a_turn_due_at_the_stop_or_later_is_not_sent(cap):
    loop = slots(turns(0, 30), cap, stop_ns=START + 100)
    first = loop.next(START)
    assert not loop.follow(first.row, START + 70)


def test_without_a_cap_a_turn_that_was_due_before_the_stop_goes_however_late():
    loop = slots([*turns(0, 50, follows=0), *turns(60)], cap=None, stop_ns=START + 100)
    first = loop.next(START)
    launched(loop, START + 100)
    assert loop.follow(first.row, START + 130)
    assert loop.next(START + 130).due_ns == START + 50


def test_a_row_that_waits_for_a_prefill_place_is_not_sent_after_the_stop():
    loop = slots([*turns(0, 50), *turns(10)], cap=2, prefill=1, stop_ns=START + 100)
    first = loop.next(START)
    loop.follow(first.row, START + 20)
    loop.prefill.give(START + 130)
    assert loop.next(START + 130) is None
    assert loop.exhausted()


def test_while_draining_a_plan_that_is_behind_is_waited_for():
    loop = slots([0, None, 50, 200], cap=1, stop_ns=START + 100, drain=True)
    launched(loop, START)
    loop.free(START + 120)
    assert launched(loop, START + 120) == []
    assert not loop.exhausted()
    assert launched(loop, START + 130) == [(1, START + 50)]


def test_with_a_cap_a_turn_that_was_due_is_not_sent_once_the_time_is_over():
    loop = slots([*turns(0, 50, follows=0), *turns(60)], cap=1, stop_ns=START + 100)
    first = loop.next(START)
    assert not loop.follow(first.row, START + 130)
    draining = slots([*turns(0, 50, follows=0), *turns(60)], cap=1, stop_ns=START + 100, drain=True)
    first = draining.next(START)
    assert draining.follow(first.row, START + 130)
    assert draining.next(START + 130).due_ns == START + 50


def test_an_open_loop_begins_conversations_whatever_others_think_about():
    loop = slots([*turns(0, 500), *turns(10)], cap=None)
    first = loop.next(START)
    loop.follow(first.row, START + 5)
    assert loop.next(START + 10).row.request == 2
    assert loop.next(START + 11) is None
    assert loop.spent()
    assert not loop.exhausted()
    assert loop.next(START + 505).row.request == 1
    assert loop.exhausted()


def test_a_later_row_that_is_not_composed_yet_is_waited_for():
    rows = Rows(turns(0, 30))
    loop = slots([0], cap=1)
    loop._rows = rows
    first = loop.next(START)
    composed, rows.after = rows.after, lambda row: None
    assert loop.follow(first.row, START + 10)
    assert loop.next(START + 50) is None
    assert not loop.exhausted()
    rows.after = composed
    assert loop.next(START + 60).due_ns == START + 40
    loop.free(START + 70)
    loop.next(START + 70)
    assert loop.exhausted()
