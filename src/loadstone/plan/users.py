"""User-centric load: a number of users, each of whom sends a turn every users / rate seconds, as if it had always been so.

The turns of all users together are even arrivals at the rate: the one at position p (due at p / rate) belongs to user
p mod U. So first turns are staggered by 1 / rate and a user's turns by U / rate, whatever the server does.

**Steady state.** A user begins a new conversation turns x U positions after beginning the last one. Had the load always
been running, a user would now be found anywhere within a conversation, with any of its turns as likely as another. So
user i begins with turn floor(turns x r_i / U) of its first conversation, as if that had been begun so many gaps earlier;
the turns before that are left out. r_i, the age of the user, is its rank among all users by the fractional part of
i / 1.618...: every rank is there once, so that an equal share of the users begins with each turn, and any few neighbours
have ages from everywhere. So new conversations begin at the even rate rate / turns from the first gap on, and early and
late turns are mixed as they will be ever after. Where conversations differ in length this holds but for one thing: one
that is met under way is more often a long one, in proportion to its length, while the first U are taken as they come.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heapreplace

from loadstone.plan import arrivals
from loadstone.plan.dated import Dated
from loadstone.plan.rate import Curve
from loadstone.plan.turn import Conversation

GOLDEN = (1 + 5**0.5) / 2
"""The fractional parts of the multiples of its inverse are spread evenly, however many there are."""


def centric(
    conversations: Iterator[Conversation], users: int, curve: Curve, requests: int | None = None
) -> Iterator[Dated]:
    """The conversations in the order of their first turns that are sent, each turn due at a position of its user's.

    Of so many `requests` these are the positions below that number, so that the rate holds until the last one: what
    ends is the load, at one moment, and not one conversation after the other.
    """
    begins = list(range(users))
    """A heap: the positions at which the users begin their next conversations."""
    ages = _ages(users)
    for conversation in conversations:
        begin, turns = begins[0], len(conversation.turns)
        if requests is not None and begin >= requests:
            return
        first_turn = turns * ages[begin] // users if begin < users else 0
        positions = range(begin, begin + users * (turns - first_turn), users)
        sent = positions if requests is None else range(begin, min(positions.stop, requests), users)
        due_ns = tuple(arrivals.rescaled(curve, sent))
        yield Dated(conversation, first_turn, due_ns, (0,) * len(due_ns))
        heapreplace(begins, positions.stop)


def _ages(users: int) -> list[int]:
    """The rank of every user by the fractional part of its number / the golden ratio."""
    ages = [0] * users
    for age, user in enumerate(sorted(range(users), key=lambda user: user / GOLDEN % 1)):
        ages[user] = age
    return ages
