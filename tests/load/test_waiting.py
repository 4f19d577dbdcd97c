"""How many requests wait at the client, by the plan."""

from __future__ import annotations

import pytest

from loadstone.load.waiting import Waiting
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
    waiting = Waiting(plan(0, 10, 20, 30), first_row=5)
    looks = [(0, 0), (0, 1), (20, 1), (20, 2), (25, 3), (30, 3), (99, 4)]
    assert [waiting.look(elapsed, drawn) for elapsed, drawn in looks] == [1, 0, 2, 1, 0, 1, 0]


def test_a_plan_that_grows_is_followed(plan):
    waiting = Waiting(plan(0), first_row=5)
    assert waiting.look(50, 1) == 0
    plan(40, 60)
    assert waiting.look(50, 1) == 1
    assert waiting.look(60, 1) == 2


def test_later_turns_are_not_in_the_queue(plan):
    plan(0)
    plan(0, 0, opens=0)
    waiting = Waiting(plan(0), first_row=5)
    assert waiting.look(1, 0) == 2
    assert waiting.look(1, 1) == 1
