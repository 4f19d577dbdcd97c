"""The order of the flights that wait: one for all, and the same for those of each target."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from loadstone.load.flight import Flight
from loadstone.load.postponed import Postponed
from loadstone.plan.store import Row

ROW = Row(0, -1, 0, 2, -1, -1, 0, 0, 0)


def flight(target):
    return Flight(1, ROW, 0, b"", target)


def test_flights_wait_in_their_order_and_one_that_lacks_something_is_the_next():
    postponed = Postponed(2)
    a, b, c, d = flight(0), flight(1), flight(0), flight(0)
    for one in (a, b, c):
        postponed.join(one)
    postponed.join(d, first=True)
    assert list(postponed.line) == [d, a, b, c]
    assert [list(line) for line in postponed.lines] == [[d, a, c], [b]]


def test_one_that_never_waited_may_leave():
    postponed = Postponed(1)
    postponed.join(here := flight(0))
    postponed.leave(flight(0))
    assert list(postponed.line) == list(postponed.lines[0]) == [here]


moves = st.tuples(st.sampled_from(["behind", "before", "leave"]), st.integers(0, 7))


@given(st.lists(moves, max_size=40))
def test_the_lines_of_the_targets_are_the_one_line_taken_apart(script):
    flights = [flight(number % 3) for number in range(8)]
    postponed, model = Postponed(3), []
    for move, number in script:
        one = flights[number]
        model = [other for other in model if other is not one]
        if move == "leave":
            postponed.leave(one)
        else:
            postponed.join(one, first=move == "before")
            model.insert(0 if move == "before" else len(model), one)
    assert list(postponed.line) == model
    assert [list(line) for line in postponed.lines] == [
        [one for one in model if one.target == target] for target in range(3)
    ]
