"""User-centric load: every user a turn every users / rate seconds, from the first moment as ever after."""

from __future__ import annotations

from collections import Counter
from itertools import count, islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadstone.plan import users
from loadstone.plan.rate import constant
from loadstone.plan.turn import Conversation, Turn

S = 1_000_000_000
FOUND = 400


def conversations(turns):
    """Conversation k has `turns[k mod n]` turns."""
    return (Conversation(id=k, turns=(Turn(text="a"),) * turns[k % len(turns)]) for k in count())


def plan(turns, number, rate=1.0, n=FOUND):
    return list(islice(users.centric(conversations(turns), number, constant(rate)), n))


def sent(found):
    """(due_ns, turn) of all turns, in the order in which they are due."""
    return sorted((due, one.first_turn + k) for one in found for k, due in enumerate(one.due_ns))


def test_three_users_with_conversations_of_four_turns():
    found = plan([4], 3, n=6)
    assert [one.conversation.id for one in found] == [0, 1, 2, 3, 4, 5]
    assert [(one.first_turn, [at // S for at in one.due_ns]) for one in found] == [
        (0, [0, 3, 6, 9]),
        (2, [1, 4]),
        (1, [2, 5, 8]),
        (0, [7, 10, 13, 16]),
        (0, [11, 14, 17, 20]),
        (0, [12, 15, 18, 21]),
    ]
    assert found[2].follows == (0, 0, 0)


TURNS = st.lists(st.integers(1, 9), min_size=1, max_size=5)


@given(TURNS, st.integers(1, 50), st.sampled_from([0.5, 3.0, 1_000.0 / 7]))
def test_all_users_together_are_even_arrivals_at_the_rate(turns, number, rate):
    found = plan(turns, number, rate)
    until = found[-1].due_ns[0]
    dues = [due for due, _ in sent(found) if due <= until]
    assert dues == [round(position * S / rate) for position in range(len(dues))]


@given(TURNS, st.integers(1, 50))
def test_conversations_come_in_the_order_of_the_first_turn_that_is_sent(turns, number):
    found = plan(turns, number)
    assert [one.due_ns[0] for one in found] == sorted(one.due_ns[0] for one in found)
    assert [one.conversation.id for one in found] == list(range(FOUND))
    assert all(len(one.due_ns) == len(one.conversation.turns) - one.first_turn > 0 for one in found)
    assert {one.first_turn for one in found[number:]} <= {0}


@given(TURNS, st.integers(1, 50))
def test_a_user_sends_a_turn_every_gap_and_begins_anew_when_the_last_was_sent(turns, number):
    found = plan(turns, number)
    mine = {}
    for one in found:
        position = [due // S for due in one.due_ns]
        mine.setdefault(position[0] % number, []).extend(position)
    for user, positions in mine.items():
        assert positions == list(range(user, user + number * len(positions), number))


@given(st.integers(1, 12), st.integers(1, 60))
def test_at_the_start_an_equal_share_of_the_users_begins_with_each_turn(turns, number):
    begun = Counter(one.first_turn for one in plan([turns], number)[:number])
    shares = [begun[turn] for turn in range(turns)]
    assert sum(shares) == number
    assert max(shares) - min(shares) <= 1


@pytest.mark.parametrize(("turns", "number"), [(4, 40), (5, 37), (3, 100)])
def test_the_mix_of_turns_is_the_same_at_the_start_as_later(turns, number):
    order = [turn for _, turn in sent(plan([turns], number, n=20 * number))][: 10 * number]
    for begin in range(0, len(order) - number, 7):
        window = Counter(order[begin : begin + number])
        assert all(abs(window[turn] - number / turns) <= 3 for turn in range(turns))


@pytest.mark.parametrize(("turns", "number"), [(4, 40), (5, 37), (3, 100)])
def test_new_conversations_begin_at_an_even_rate(turns, number):
    order = [turn for _, turn in sent(plan([turns], number, n=20 * number))][number : 10 * number]
    for begin in range(0, len(order) - 6 * turns, 5):
        new = order[begin : begin + 6 * turns].count(0)
        assert 3 <= new <= 9


def test_conversations_are_asked_for_one_by_one():
    asked = []
    source = ((asked.append(one.id), one)[1] for one in conversations([3]))
    found = users.centric(source, 1_000_000, constant(10.0))
    assert [one.due_ns[0] for one in islice(found, 3)] == [0, S // 10, S // 5]
    assert asked == [0, 1, 2]


def test_it_ends_with_the_conversations():
    few = islice(conversations([2]), 5)
    assert len(list(users.centric(few, 2, constant(1.0)))) == 5


@given(TURNS, st.integers(1, 50), st.integers(1, 300))
def test_of_so_many_requests_every_position_below_that_is_there_once(turns, number, requests):
    found = list(users.centric(conversations(turns), number, constant(1.0), requests))
    assert [due // S for due, _ in sent(found)] == list(range(requests))
    whole = plan(turns, number)
    for one, uncut in zip(found, whole, strict=False):
        assert (one.conversation.id, one.first_turn) == (uncut.conversation.id, uncut.first_turn)
        assert one.due_ns == tuple(due for due in uncut.due_ns if due < requests * S) != ()


def test_the_rate_holds_until_the_last_of_so_many_requests():
    found = users.centric(conversations([5]), 20, constant(10.0), 200)
    in_each_second = Counter(due // S for due, _ in sent(found))
    assert in_each_second == dict.fromkeys(range(20), 10)
