"""Places under a step function."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadstone.load.capacity import NEVER_NS, Capacity


def capacity(*steps, start=0):
    places = Capacity()
    places.reset(steps or None, start)
    return places


def take_all(places, now):
    """Takes every place that is free, and says since when each was."""
    places.advance(now)
    freed = []
    while places.available:
        freed.append(places.take(now))
    return freed


def test_places_are_free_from_the_start():
    assert take_all(capacity((0, 3), start=100), 105) == [100, 100, 100]


def test_without_steps_there_is_always_a_place():
    places = capacity()
    for taken in range(1, 4):
        assert (places.take(5), places.taken, places.available > 0) == (5, taken, True)
    places.give(6)
    assert places.taken == 2


def test_a_place_given_back_is_free_since_then_and_the_first_is_taken_first():
    places = capacity((0, 2))
    take_all(places, 0)
    places.give(10)
    places.give(20)
    assert take_all(places, 30) == [10, 20]


def test_a_step_up_frees_places_at_its_moment():
    places = capacity((0, 1), (50, 3), start=100)
    assert take_all(places, 149) == [100]
    assert places.changes_ns == 150
    assert take_all(places, 160) == [150, 150]
    assert places.changes_ns == NEVER_NS


def test_a_step_down_takes_free_places_away_and_then_those_given_back():
    places = capacity((0, 4), (50, 2))
    places.take(0)
    places.advance(50)
    assert take_all(places, 50) == [0]
    places = capacity((0, 4), (50, 2))
    assert len(take_all(places, 0)) == 4
    places.advance(50)
    for given_ns, free in ((60, []), (70, []), (80, [80])):
        places.give(given_ns)
        assert take_all(places, given_ns) == free


def test_a_place_that_rests_is_free_after_its_rest():
    places = capacity((0, 1))
    places.take(0)
    places.give(10, rest_ns=5)
    assert (take_all(places, 14), places.changes_ns) == ([], 15)
    assert take_all(places, 15) == [15]


def test_what_is_taken_stays_so_when_the_steps_are_others():
    places = capacity((0, 4))
    take_all(places, 0)
    places.give(5)
    places.reset(((0, 5),), 10)
    assert (places.taken, take_all(places, 10)) == (3, [10, 10])


def test_what_is_taken_can_be_said():
    places = capacity()
    places.reset(((0, 2),), 10, taken=3)
    assert take_all(places, 10) == []
    places.give(11)
    assert take_all(places, 11) == []
    places.give(12)
    assert take_all(places, 12) == [12]


@pytest.mark.parametrize(
    ("steps", "shut"),
    [([(0, 0)], True), ([(0, 1)], False), ([(0, 0), (9, 1)], False), ([(0, 1), (9, 0)], False), ([], False)],
)
def test_it_is_shut_when_there_never_will_be_a_place(steps, shut):
    assert capacity(*steps).shut is shut


@given(
    steps=st.lists(st.tuples(st.integers(0, 100), st.integers(0, 6)), min_size=1, max_size=6),
    acts=st.lists(st.tuples(st.integers(0, 20), st.sampled_from(["take", "give", "rest"])), max_size=60),
)
def test_no_more_are_taken_than_the_steps_allow_and_none_is_lost(steps, acts):
    steps = [(0, steps[0][1]), *sorted(steps[1:])]
    places, now, taken = capacity(*steps), 0, 0
    for gap, act in acts:
        now += gap
        places.advance(now)
        level = [n for at, n in steps if at <= now][-1]
        if act == "take" and places.available:
            taken += 1
            assert places.take(now) <= now
            assert taken <= level
        elif act != "take" and taken:
            taken -= 1
            places.give(now, rest_ns=7 if act == "rest" else 0)
    now += 1_000
    assert len(take_all(places, now)) == max(0, steps[-1][1] - taken)
