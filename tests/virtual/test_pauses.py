"""Limits that count from moments in the past, whatever the order in which they are noted."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from loadstone.virtual.pauses import SLACK, Pauses


def test_what_has_rested_longest_is_up_first_though_it_was_noted_last():
    pauses = Pauses(10)
    pauses.start("late", 100)
    pauses.start("early", 95)
    assert pauses.next_ns == 105
    assert list(pauses.expired(104)) == []
    assert list(pauses.expired(105)) == ["early"]
    assert list(pauses.expired(200)) == ["late"]
    assert pauses.next_ns is None


def test_a_new_start_takes_the_place_of_the_old_one():
    pauses = Pauses(10)
    pauses.start("a", 0)
    pauses.start("a", 7)
    assert (list(pauses.expired(16)), list(pauses.expired(17))) == ([], ["a"])


def test_what_was_stopped_is_not_up():
    pauses = Pauses(10)
    pauses.start("a", 0)
    pauses.stop("a")
    pauses.stop("nobody")
    assert pauses.next_ns is None
    assert list(pauses.expired(99)) == []


def test_what_has_gone_is_not_kept_for_long():
    pauses = Pauses(1_000_000)
    for number in range(1_000):
        pauses.start(number, 0)
        pauses.stop(number)
    assert len(pauses._heap) <= SLACK + 2


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 9), st.integers(0, 7), st.booleans())))
def test_those_that_are_up_are_those_a_plain_look_at_all_would_find(steps):
    pauses, until, now = Pauses(7), {}, 0
    for thing, later, ago, stop in steps:
        now += later
        if stop:
            pauses.stop(thing)
            until.pop(thing, None)
        else:
            pauses.start(thing, now - ago)
            until[thing] = now - ago + 7
        gone = {thing for thing, at in until.items() if at <= now}
        assert set(pauses.expired(now)) == gone
        until = {thing: at for thing, at in until.items() if thing not in gone}
        assert pauses.next_ns == min(until.values(), default=None)
