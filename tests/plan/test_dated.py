"""When the turns of a conversation are due."""

from __future__ import annotations

from itertools import count, repeat

import pytest

from loadstone.errors import UsageError
from loadstone.plan.dated import Dated, arriving, recorded
from loadstone.plan.turn import Conversation, Turn

MS = 1_000_000


def talk(number, *times, think=0):
    """A conversation with a turn for each time (ms; None: nobody says)."""
    turns = tuple(Turn(text="a", at_ns=None if at is None else at * MS, think_ns=think * MS) for at in times)
    return Conversation(id=number, turns=turns)


def fixed(*conversations, origin=0, latest=None):
    """(id, due times in ms, follows) of what is sent of them."""
    found = recorded(
        conversations, None if origin is None else origin * MS, None if latest is None else latest * MS
    )
    return [(one.conversation.id, [due // MS for due in one.due_ns], list(one.follows)) for one in found]


def test_the_first_turn_is_due_when_it_arrives_and_the_others_follow_the_answer_before():
    one, two = talk(0, None, None, None, think=5), talk(1, None)
    assert list(arriving(iter([one, two]), iter([70, 90]))) == [
        Dated(one, 0, (70, 5 * MS, 5 * MS), (0, 1, 1)),
        Dated(two, 0, (90,), (0,)),
    ]


def test_it_ends_with_the_arrivals_or_with_the_conversations():
    endless = (talk(k, None) for k in count())
    assert len(list(arriving(endless, iter([1, 2, 3])))) == 3
    assert len(list(arriving(iter([talk(0, None)]), repeat(0)))) == 1


def test_no_conversation_is_asked_for_that_does_not_arrive():
    source = iter([talk(0, None), talk(1, None)])
    assert len(list(arriving(source, iter([5])))) == 1
    assert next(source).id == 1


def test_turns_are_due_at_their_own_times():
    assert fixed(talk(0, 0, 30), talk(1, 10)) == [(0, [0, 30], [0, 0]), (1, [10], [0])]


def test_a_later_turn_without_a_time_follows_the_answer_before():
    assert fixed(talk(0, 10, None, 90, think=7)) == [(0, [10, 7, 90], [0, 1, 0])]


def test_times_count_from_the_origin_and_what_is_earlier_is_left_out():
    conversations = talk(0, 40, 60), talk(1, 50, 70), talk(2, 55)
    assert fixed(*conversations, origin=50) == [(1, [0, 20], [0, 0]), (2, [5], [0])]


def test_the_first_time_may_be_the_origin():
    assert fixed(talk(0, 40, 60), talk(1, 50), origin=None) == [(0, [0, 20], [0, 0]), (1, [10], [0])]


def test_later_times_are_left_out_and_so_is_what_follows_on_them():
    conversations = talk(0, 10, 20, 21, None), talk(1, 20, None, think=3), talk(2, 21), talk(3, 22)
    assert fixed(*conversations, latest=20) == [(0, [10, 20], [0, 0]), (1, [20, 3], [0, 1])]


def test_no_conversation_is_asked_for_behind_the_first_that_is_too_late():
    source = (talk(k, 10 * k) for k in count())
    assert fixed(*[], origin=0) == []
    assert [one.conversation.id for one in recorded(source, 0, 25 * MS)] == [0, 1, 2]
    assert next(source).id == 4


def test_a_conversation_without_a_time_cannot_be_placed():
    with pytest.raises(UsageError, match=r"load\.fixed_schedule: conversation 3 has no timestamp"):
        fixed(talk(3, None, 10))
