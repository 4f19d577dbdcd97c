"""Which idle connection a request gets."""

from __future__ import annotations

import pytest

from loadstone.load.flight import Flight
from loadstone.load.pool import pool
from loadstone.plan.store import Row


def row(conversation=0, final=1, phase=0):
    return Row(0, -1, 0, 0, -1, -1, conversation, 0, phase, final)


def flight(*which, **changes):
    return Flight(1, row(*which, **changes), 0, b"")


def test_the_connection_used_last_goes_first():
    idle = pool("pooled")
    assert idle.keep("old", flight()) and idle.keep("new", flight(7))
    assert [idle.take(flight(3)) for _ in range(3)] == ["new", "old", None]


def test_a_connection_that_was_closed_is_not_given_out():
    idle = pool("pooled")
    idle.keep("open", flight())
    idle.keep("closed", flight())
    idle.remove("closed")
    assert len(idle._idle) == 1
    assert [idle.take(flight()), idle.take(flight())] == ["open", None]


def test_never_keeps_none():
    idle = pool("never")
    assert not idle.keep("one", flight())
    assert idle.take(flight()) is None


def test_a_conversation_keeps_its_connection_to_its_last_turn():
    idle = pool("sticky-user-sessions")
    assert idle.keep("a", flight(1, final=0)) and idle.keep("b", flight(2, final=0))
    assert idle.take(flight(3)) is None
    assert idle.take(flight(1)) == "a"
    assert not idle.keep("a", flight(1, final=1))
    assert idle.take(flight(1)) is None
    assert idle.take(flight(2)) == "b"
    assert len(idle._idle) == 0


@pytest.mark.parametrize("reuse", ["pooled", "sticky-user-sessions"])
def test_nothing_of_a_removed_connection_stays(reuse):
    idle = pool(reuse)
    idle.keep("one", flight(1, final=0))
    idle.remove("one")
    assert idle.take(flight(1)) is None
    assert not any(vars(idle).values())


def test_a_number_of_another_phase_is_another_conversation():
    idle = pool("sticky-user-sessions")
    assert idle.keep("a", flight(1, final=0, phase=0)) and idle.keep("b", flight(1, final=0, phase=1))
    assert [idle.take(flight(1, phase=phase)) for phase in (2, 1, 0)] == [None, "b", "a"]


@pytest.mark.parametrize("reuse", ["pooled", "sticky-user-sessions"])
def test_the_one_that_has_been_idle_for_longest(reuse):
    idle = pool(reuse)
    assert idle.oldest() is None
    for number, connection in enumerate("abc"):
        idle.keep(connection, flight(number, final=0))
    assert idle.oldest() == "a"
    idle.remove("a")
    assert idle.oldest() == "b"
    again = idle.take(flight(1 if reuse == "sticky-user-sessions" else 9))
    idle.keep(again, flight(1, final=0))
    assert idle.oldest() == ("c" if reuse == "sticky-user-sessions" else "b")


def test_only_a_conversation_of_its_own_has_a_connection_kept_for_it():
    idle = {reuse: pool(reuse) for reuse in ("pooled", "never", "sticky-user-sessions")}
    for kept in idle.values():
        kept.keep("one", flight(1, final=0, phase=3))
    found = {reuse: kept.kept_for(row(1, phase=3)) for reuse, kept in idle.items()}
    assert found == {"pooled": None, "never": None, "sticky-user-sessions": "one"}
    assert idle["sticky-user-sessions"].kept_for(row(1, phase=4)) is None
    assert idle["sticky-user-sessions"].take(flight(1, phase=3)) == "one"


def test_what_anybody_may_have_goes_to_one_that_waits_first():
    assert {reuse: pool(reuse).shared for reuse in ("pooled", "never", "sticky-user-sessions")} == {
        "pooled": True,
        "never": False,
        "sticky-user-sessions": False,
    }
