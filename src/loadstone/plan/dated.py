"""Conversations with the due times of their turns, for arrivals of any kind and for times that are given. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import takewhile
from typing import NamedTuple

from loadstone.errors import UsageError
from loadstone.plan.turn import Conversation, Turn


class Dated(NamedTuple):
    """A conversation, from turn `first_turn` on, and when its turns are due.

    `due_ns` and `follows` have an entry for each turn that is sent: where `follows` is 0, `due_ns` counts from the start
    of the phase; where it is 1, from the end of the turn before. Turns behind the last entry are left out.
    """

    conversation: Conversation
    first_turn: int
    due_ns: tuple[int, ...]
    follows: tuple[int, ...]


def arriving(conversations: Iterator[Conversation], due_times: Iterator[int]) -> Iterator[Dated]:
    """Each conversation begins at the next due time; every later turn follows the answer before by its think time."""
    for due_ns, conversation in zip(due_times, conversations, strict=False):
        later = conversation.turns[1:]
        if not later:  # by far the most, and the others cost twice as much
            yield Dated(conversation, 0, (due_ns,), (0,))
            continue
        yield Dated(conversation, 0, (due_ns, *(turn.think_ns for turn in later)), (0, *(1 for _ in later)))


def recorded(
    conversations: Iterable[Conversation], origin_ns: int | None, latest_ns: int | None
) -> Iterator[Dated]:
    """Each turn at its own time `at_ns`, counted from `origin_ns`; a later turn without one follows the answer before.

    `conversations` are ordered by their first turn; `origin_ns` None is the time of the very first. Left out are
    conversations that begin before the origin or after `latest_ns`, and turns after `latest_ns` with all that follow.
    Raises `UsageError` for a first turn without a time.
    """
    for conversation in conversations:
        first_ns = _begin_ns(conversation)
        origin_ns = first_ns if origin_ns is None else origin_ns
        if latest_ns is not None and first_ns > latest_ns:
            return
        if first_ns >= origin_ns:
            sent = list(takewhile(lambda turn: not _is_later(turn, latest_ns), conversation.turns))
            yield Dated(
                conversation,
                0,
                tuple(turn.think_ns if turn.at_ns is None else turn.at_ns - origin_ns for turn in sent),
                tuple(int(turn.at_ns is None) for turn in sent),
            )


def _begin_ns(conversation: Conversation) -> int:
    at_ns = conversation.turns[0].at_ns
    if at_ns is None:
        raise UsageError(
            f"load.fixed_schedule: conversation {conversation.id} has no timestamp; give its first turn one."
        )
    return at_ns


def _is_later(turn: Turn, latest_ns: int | None) -> bool:
    return turn.at_ns is not None and latest_ns is not None and turn.at_ns > latest_ns
