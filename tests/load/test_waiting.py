"""How many requests wait at the client, by the plan."""

from __future__ import annotations

import pytest

from loadstone.load.waiting import Arrived, Held, Planned, queue
from loadstone.plan.rate import constant
from loadstone.plan.schedule import Phase
from loadstone.plan.store import Draft, Writer


@pytest.fixture
def plan(tmp_path):
    writer = Writer(tmp_path, [5])

    def grow(*due_times, opens=1):
        writer.append(Draft(due, b"{}", -1, -1, 0, 0, 0, opens=opens) for due in due_times)
        return tmp_path

    yield grow
    writer.close()


def test_what_is_due_and_not_taken_waits(plan):
    waiting = Planned(plan(0, 10, 20, 30), first_row=5)
    looks = [(0, 0), (0, 1), (20, 1), (20, 2), (25, 3), (30, 3), (99, 4)]
    assert [waiting.look(elapsed, drawn, 0, 0) for elapsed, drawn in looks] == [1, 0, 2, 1, 0, 1, 0]


def test_a_plan_that_grows_is_followed(plan):
    waiting = Planned(plan(0), first_row=5)
    assert waiting.look(50, 1, 0, 0) == 0
    plan(40, 60)
    assert waiting.look(50, 1, 0, 0) == 1
    assert waiting.look(60, 1, 0, 0) == 2


def test_later_turns_are_not_in_the_queue(plan):
    plan(0)
    plan(0, 0, opens=0)
    waiting = Planned(plan(0), first_row=5)
    assert waiting.look(1, 0, 0, 0) == 2
    assert waiting.look(1, 1, 0, 0) == 1


def test_where_due_times_are_drawn_what_has_arrived_and_was_not_launched_waits():
    waiting = Arrived(iter([0, 10, 20, 30]))
    looks = [(0, 0), (0, 1), (20, 1), (25, 3), (99, 3), (99, 4)]
    assert [waiting.look(elapsed, 0, launched, 0) for elapsed, launched in looks] == [1, 0, 2, 0, 1, 0]


def test_in_a_closed_loop_nothing_waits_but_what_workers_hold():
    assert Held().look(50, 3, 3, 2) == 2


def phase(**changes):
    return Phase(**{"name": "m", "kind": "measured", "pattern": "closed", **changes})


def test_which_queue_a_phase_has(tmp_path):
    kinds = [
        (phase(slots=2), Held),
        (phase(pattern="constant", curve=constant(5.0), slots=2), Arrived),
        (phase(pattern="constant", curve=constant(5.0), prefill=2), Arrived),
        (phase(pattern="constant", curve=constant(5.0), slots=2, one_turn=False), Planned),
        (phase(pattern="fixed", slots=2), Planned),
        (phase(pattern="fixed"), Held),
    ]
    assert [type(queue(one, tmp_path, 1)) for one, _ in kinds] == [kind for _, kind in kinds]
