"""The line before an engine."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadstone.sim.sequence import Sequence
from loadstone.sim.waiting import ByPriority, Fcfs


def sequence(order: int, priority: int = 0) -> Sequence:
    made = Sequence(1, 1, priority=priority)
    made.order = order
    return made


def emptied(line) -> list[Sequence]:
    found = []
    while line:
        found.append(line.first())
        line.remove(found[-1])
    return found


def test_first_come_first_served() -> None:
    line: Fcfs[Sequence] = Fcfs()
    a, b, c = (sequence(order) for order in (1, 2, 3))
    for one in (a, b, c):
        line.add(one)
    line.remove(b)
    assert (b in line, list(line), len(line)) == (False, [a, c], 2)
    line.put_back(b)
    assert emptied(line) == [b, a, c]


def test_of_several_that_are_put_back_the_last_is_first() -> None:
    line: Fcfs[Sequence] = Fcfs()
    a, b, c = (sequence(order) for order in (1, 2, 3))
    line.add(c)
    line.put_back(b)
    line.put_back(a)
    assert emptied(line) == [a, b, c]


def test_the_lowest_priority_number_is_first_and_among_equals_the_first_to_come() -> None:
    line: ByPriority[Sequence] = ByPriority()
    late, early, urgent = sequence(3, 1), sequence(2, 1), sequence(4, 0)
    for one in (late, early, urgent):
        line.add(one)
    assert emptied(line) == [urgent, early, late]


def test_who_is_put_back_by_priority_stands_where_it_stood() -> None:
    line: ByPriority[Sequence] = ByPriority()
    a, b = sequence(1), sequence(2)
    line.add(a)
    line.add(b)
    line.remove(a)
    line.put_back(a)
    assert set(line) == {a, b}
    assert emptied(line) == [a, b]


def test_who_has_left_is_forgotten_also_behind_others_that_stay() -> None:
    line: ByPriority[Sequence] = ByPriority()
    line.add(sequence(0))
    for order in range(1, 5000):
        late = sequence(order, 1)
        line.add(late)
        line.remove(late)
    assert len(line._heap) < 100
    assert len(emptied(line)) == 1


@pytest.mark.parametrize("made", [Fcfs, ByPriority])
def test_who_is_not_there_cannot_be_taken_out(made) -> None:
    line = made()
    assert len(line) == 0
    with pytest.raises(KeyError):
        line.remove(sequence(1))


moves = st.lists(st.tuples(st.sampled_from(["add", "take", "leave", "back"]), st.integers(0, 30)))


@given(moves, st.booleans())
def test_a_line_is_a_list_kept_in_order(steps: list[tuple[str, int]], by_priority: bool) -> None:
    line: Fcfs[Sequence] | ByPriority[Sequence] = ByPriority() if by_priority else Fcfs()
    plain: list[Sequence] = []
    out: list[Sequence] = []
    for order, (what, number) in enumerate(steps):
        if what == "add":
            one = sequence(order, number % 3)
            line.add(one)
            plain.append(one)
        elif what == "back" and out:
            one = out.pop(number % len(out))
            line.put_back(one)
            plain.insert(0, one)
        elif what in ("take", "leave") and plain:
            one = line.first() if what == "take" else plain[number % len(plain)]
            if what == "take":
                expected = min(plain, key=lambda o: (o.priority, o.order)) if by_priority else plain[0]
                assert one is expected
            line.remove(one)
            plain.remove(one)
            out.append(one)
        assert len(line) == len(plain)
        assert set(line) == set(plain)
