"""A reply in the making: what each event brings, choice by choice, and the whole at the end.

One rule: answers with one choice, which nearly all have, cost nothing for those with several.
"""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Callable, Sequence
from itertools import repeat
from typing import Annotated, Any, Protocol

import msgspec

from loadstone.endpoints import Reply, _drafts, _error, _usage

MOST_CHOICES = 2**15 - 1
Number = Annotated[int, msgspec.Meta(ge=0, le=MOST_CHOICES)]
"""The index of a choice, as an endpoint's types have it."""
USAGES = 1_000
"""So many of them are kept; the last one counts, and those behind it may say nothing."""
THOUGHT, ANSWER = 1, 2
"""What a choice of one event can bring."""


class Choice(Protocol):
    """What is known here of one choice in an event or a body."""

    index: Number | None


class Chunk(Protocol):
    """What is known here of an event or a body."""

    error: Any
    message: Any
    code: Any
    detail: Any
    usage: Any
    metrics: Any
    timings: Any

    @property
    def choices(self) -> Sequence[Choice] | None:
        """The choices that it tells of."""
        ...


Take = Callable[[Any, Reply], int]
"""Adds to a reply what one choice of an event or a body brought, and says which of `THOUGHT` and `ANSWER` that was."""


class Gathering:
    """Takes events in their order.

    `reply` is that of choice 0 until `done`, and has the `output` and the error of all. A caller may
    add an event of choice 0 to it that brings text and nothing else, instead of handing it over.
    """

    def __init__(self, take: Take) -> None:
        self.reply = Reply()
        self._take = take
        self._with_first = False
        self._others: dict[int, Reply] = {}
        self._numbers = array("h")
        """The choices of the entries of `output` up to the last one that is not of choice 0."""
        self._first_answer: int | None = None
        self._usages: deque[Any] = deque(maxlen=USAGES)
        self._drafts: _drafts.Drafts | None = None
        self._counts: list[int | None] = []

    def add(self, position: int, chunk: Chunk) -> None:
        """Takes the event at `position`, or a whole body."""
        reply, usage = self.reply, chunk.usage
        if usage is not None:
            self._usages.append(usage)
        if chunk.metrics is not None or chunk.timings is not None:
            self._drafts = _drafts.told(chunk.metrics, chunk.timings) or self._drafts
        for place, choice in enumerate(chunk.choices or ()):
            index = choice.index
            number = min(place, MOST_CHOICES) if index is None else index
            part = self._part(number)
            brought = self._take(choice, part)
            if brought:
                if number:
                    self._numbers.frombytes(bytes(2 * (len(reply.output) - len(self._numbers))))
                    self._numbers.append(number)
                reply.output.append(position)
                if usage is not None:
                    self._counts.append(_usage.completion_tokens(usage))
                if brought & ANSWER and self._first_answer is None:
                    self._first_answer = position
            if part.error and not reply.error:
                reply.error = part.error
        if (chunk.choices is None or chunk.error) and not reply.error:
            reply.error = _error.in_band(chunk, chunk.choices is not None)

    def _part(self, number: int) -> Reply:
        if number:
            return self._others.setdefault(number, Reply())
        self._with_first = True
        return self.reply

    def done(self, first_answer: int | None = None) -> Reply:
        """The whole reply; `first_answer` is that among the events which the caller added itself."""
        reply = self.reply
        reply.first_answer = self._first_answer
        if first_answer is not None and (reply.first_answer is None or first_answer < reply.first_answer):
            reply.first_answer = first_answer
        reply.usage = _drafts.beside(_usage.last(self._usages), self._drafts)
        if self._others:
            self._merge()
        else:
            reply.choices = int(reply.brought)
        if len(self._counts) == len(reply.output):
            reply.tokens_after = self._running()
        return reply

    def _merge(self) -> None:
        """Puts the other choices behind the first one."""
        reply = self.reply
        first = [reply] if self._with_first or reply.brought else []
        parts = [*first, *(self._others[number] for number in sorted(self._others))]
        reply.choices = sum(part.brought for part in parts)
        reply.choice = [*self._numbers, *repeat(0, len(reply.output) - len(self._numbers))]
        reasons = [part.finish_reason for part in parts]
        reply.finish_reason = reasons[0] if all(reasons) else None
        for part in parts[len(first) :]:
            reply.text += part.text
            reply.reasoning += part.reasoning
            reply.tool_calls += part.tool_calls

    def _running(self) -> list[int] | None:
        reply = self.reply
        if reply.choice is None:
            return _usage.running(self._counts)
        total = reply.usage.completion_tokens if reply.usage else None
        return _usage.running_of_choices(self._counts, reply.choice, total)


def whole(body: Chunk, take: Take) -> Reply:
    """The meaning of an unstreamed body."""
    gathering = Gathering(take)
    gathering.add(0, body)
    reply = gathering.done()
    reply.output, reply.choice, reply.first_answer, reply.tokens_after = [], None, None, None
    reply.ended = bool(body.choices)
    return reply
