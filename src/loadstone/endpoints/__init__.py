"""API shapes, one module each: how a turn is spelled as a request, how an answer is read.

A module here (or an entry point of the group `loadstone.endpoints`) is an endpoint. What it has to
carry is `Endpoint` below; `EXAMPLES` are run by the contract tests, the response split at every
byte. An endpoint knows no sockets, clocks or tokenizers, and neither SSE nor HTTP: it is given the data of events.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

import msgspec

from loadstone.plan.turn import Turn


class Ask(msgspec.Struct, frozen=True, kw_only=True):
    """What every request of a run asks for, beside its content.

    `extra` are fields of the request; they win over everything else, and one that is None takes its
    field out of the request (for servers that refuse what they do not know).
    """

    model: str
    streaming: bool = False
    extra: Mapping[str, Any] = {}
    legacy_max_tokens: bool = False
    usage_per_chunk: bool = False


class Usage(msgspec.Struct, frozen=True, kw_only=True):
    """What the server itself says of the work that an answer was; None where it did not say."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    reasoning_tokens: int | None = None
    cached_tokens: int | None = None
    accepted_prediction_tokens: int | None = None
    """Of a predicted output that the request brought with it, those that are in the answer."""
    rejected_prediction_tokens: int | None = None
    draft_steps: int | None = None
    """Speculative decoding: steps that checked a draft."""
    draft_tokens: int | None = None
    draft_accepted_tokens: int | None = None
    audio_s: float | None = None
    """Seconds of sound in the request."""


class Reply(msgspec.Struct, kw_only=True):
    """The meaning of one answer.

    For a stream, `output` lists the positions (in the sequence of its events) of the events that
    brought output tokens of any channel, and `first_answer` is the position of the first one that was
    not reasoning. `tokens_after[i]` is the server's running completion-token count after
    `output[i]`, when it tells (continuous usage); otherwise the list is None. `text`, `reasoning` and
    `tool_calls` are pieces in the order in which they came; joined they are the channel's whole text.
    `error` is the server's own words when the answer is an error in band.

    Several choices (`n` > 1) are kept apart: an event that brings output of two of them stands in `output` twice,
    `choice[i]` is the number of the choice that `output[i]` belongs to (None when all are of choice 0), and the
    pieces of a channel are those of choice 0, then those of choice 1, and so on. `finish_reason` is that of the
    choice with the lowest number, and None until every choice seen has given one.
    """

    output: list[int] = []
    choice: list[int] | None = None
    choices: int = 0
    """How many different choices brought any output."""
    first_answer: int | None = None
    text: list[str] = []
    reasoning: list[str] = []
    tool_calls: list[str] = []
    items: int | None = None
    """How many images, embeddings or ranked passages it brought; None from an endpoint whose answers are text."""
    finish_reason: str | None = None
    usage: Usage | None = None
    tokens_after: list[int] | None = None
    error: str | None = None
    ended: bool = False
    """The answer said that it is over: the stream by its end mark, a body by being whole."""

    @property
    def brought(self) -> bool:
        """Whether there was any output, of whatever kind."""
        return self.spoke or bool(self.items)

    @property
    def spoke(self) -> bool:
        """Whether there was any text, of whatever channel."""
        return bool(self.text or self.reasoning or self.tool_calls)


class Example(msgspec.Struct, frozen=True, kw_only=True):
    """A turn, the request it becomes, the bytes a server answers, and what they mean."""

    name: str
    turns: Sequence[Turn]
    ask: Ask
    request: Mapping[str, Any]
    response: bytes
    """The body (not the HTTP head): an SSE stream when `ask.streaming`, else one JSON document."""
    reply: Reply


class Endpoint(Protocol):
    """What a module in this package provides."""

    SUMMARY: str
    """One line for the docs table."""
    PATH: str
    """The path appended to the server's base address, such as `/v1/chat/completions`."""
    STREAMS: bool
    """Whether `--streaming` makes sense."""
    TOKEN_IDS: bool
    """Whether a prompt may be given as token ids."""
    END_MARK: bytes
    """Data of the event that ends a stream and is no JSON (`[DONE]`); empty when there is none."""
    EXAMPLES: Sequence[Example]
    Event: type
    """msgspec type of one event's data in a stream; only the fields that `fold` reads, all optional."""
    Answer: type
    """msgspec type of a whole, unstreamed body; likewise."""

    def body(self, turns: Sequence[Turn], ask: Ask) -> dict[str, Any]:
        """The request as a JSON object: `turns` is the conversation so far, the last one what is asked now."""
        ...

    def begun(self, data: bytes) -> bool:
        """Whether `data`, body bytes that begin at the start of a line, brings output of any channel.

        Runs on the hot path until it is true: bytes only, no parsing. May err on the side of
        False for spellings it does not know, never on the side of True; the decoded recording has the last word.
        """
        ...

    def ended(self, data: bytes) -> bool:
        """Whether `data`, likewise, holds the mark that ends a stream. Runs on the hot path for every read."""
        ...

    def fold(self, events: Iterable[Any]) -> Reply:
        """The meaning of a stream of decoded `Event`s, without end mark and `event: error`.

        They come one at a time and once, so that an answer of any length is held but once.
        """
        ...

    def whole(self, answer: Any) -> Reply:
        """The meaning of an unstreamed, decoded `Answer`."""
        ...
