"""Which idle connection a request gets."""

from __future__ import annotations

import pytest

from loadstone.load.flight import Flight
from loadstone.load.pool import pool
from loadstone.plan.store import Row


def flight(conversation=0, final=1):
    return Flight(1, Row(0, -1, 0, 0, -1, -1, conversation, 0, 0, final), 0, b"")


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
