"""How many rows of a plan count for a phase that has ended."""

from __future__ import annotations

import pytest

from loadstone.load.counted import drawn_rows, due_rows
from loadstone.plan.rate import constant, series
from loadstone.plan.schedule import Phase
from loadstone.plan.store import Draft, Writer

S = 1_000_000_000
END = Draft(-1, b"", -1, -1, 0, 0, 0)


@pytest.fixture
def plan(tmp_path):
    """A plan that begins with row 10: drafts, or conversations given by the due times of their turns."""

    def write(*conversations, marks=0):
        writer = Writer(tmp_path, [10])
        for number, due_times in enumerate(conversations):
            last = len(due_times) - 1
            writer.append(
                Draft(due, b"{}", -1, -1, number, turn, 0, int(turn == last), opens=int(not turn))
                for turn, due in enumerate(due_times)
            )
        writer.append([END] * marks)
        writer.close()
        return tmp_path

    return write


def phase(**changes):
    return Phase(**{"name": "measured", "kind": "measured", "pattern": "closed", "first_row": 10, **changes})


def test_of_a_closed_loop_what_was_drawn_counts(plan):
    assert drawn_rows(phase(), plan([-1], [-1], [-1]), 2) == 2


def test_a_conversation_that_was_begun_counts_whole(plan):
    folder = plan([-1, -1, -1], [-1, -1], [-1])
    assert [drawn_rows(phase(), folder, drawn) for drawn in (0, 1, 2, 3, 4, 6)] == [0, 3, 3, 3, 5, 6]


def test_a_count_cuts_the_last_conversation(plan):
    assert drawn_rows(phase(requests=4), plan([-1, -1, -1], [-1, -1]), 4) == 4


def test_marks_of_the_end_are_no_rows(plan):
    assert drawn_rows(phase(), plan([-1], [-1], marks=5), 6) == 2


def test_of_given_times_what_was_due_before_the_stop_counts(plan):
    folder = plan([0, 900], [5], [20, 30], [40], marks=3)
    fixed = phase(pattern="fixed", one_turn=False)
    assert [due_rows(fixed, folder, 1, lasted) for lasted in (0, 5, 6, 20, 21, None)] == [0, 2, 3, 3, 5, 6]


def test_what_was_not_composed_in_time_counts_as_well(plan):
    folder = plan([0], [S // 10])
    even = phase(pattern="constant", curve=constant(10.0), rate=10.0)
    assert due_rows(even, folder, 1, S) == 10
    assert due_rows(phase(pattern="constant", curve=constant(10.0), sessions=4), folder, 1, S) == 4
    assert due_rows(phase(pattern="constant", curve=constant(10.0), requests=7), folder, 1, S) == 7


def test_a_count_that_nothing_stopped_is_what_counts(plan):
    assert due_rows(phase(pattern="constant", curve=constant(10.0), requests=7), plan([0]), 1, None) == 7


def test_a_rate_that_ends_at_0_may_come_to_less_than_the_count(plan):
    falling = phase(pattern="constant", curve=series([(0, 10), (1, 0)]), requests=100)
    assert due_rows(falling, plan([0]), 1, None) == 5, "at the areas 0 to 4, of 5 in all"


def test_given_times_may_be_fewer_than_the_count(plan):
    fixed = phase(pattern="fixed", one_turn=False, requests=100)
    assert due_rows(fixed, plan([0, 900], [5], marks=3), 1, None) == 3
