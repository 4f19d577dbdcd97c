"""What a fault is given: the request, and the well-behaved answer that it spoils.

That answer has five tokens (fewer when fewer are asked for), the first after 70 ms, the others 20 ms apart, and ends
by itself. As everywhere in the engine, the head travels with the first token and the closing with the last one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from loadstone.sim.faults.steps import Send, Steps, Wait
from loadstone.sim.http import LAST_CHUNK, SERVER, Request, chunk
from loadstone.sim.words import WORDS

if TYPE_CHECKING:
    from loadstone.sim.api.asked import Asked
    from loadstone.sim.api.choices import Choices

TOKENS = 5
FIRST_NS = 70_000_000
GAP_NS = 20_000_000
BEFORE = 3
"""Tokens that come before something goes wrong in mid-stream."""
DONE = b"data: [DONE]\n\n"

Event = dict[str, Any]


class Beat(NamedTuple):
    """A part of a stream that is sent at once: so long after the one before, so many bytes, so many tokens."""

    pause_ns: int
    data: bytes
    tokens: int = 0


class Script(NamedTuple):
    """One request and its answer."""

    asked: Asked
    answer: Choices
    request: Request
    first: bool
    """Whether it is the first request of its connection."""
    number: int
    """The running number of the request, from 1; preflights are not counted."""
    after: int = 0
    """Of a fault of the whole server: how many requests are answered well before it."""

    # ---- events ----

    def word(self, index: int) -> str:
        """The text of the token `index`."""
        return WORDS[(self.asked.start_word + index) % len(WORDS)]

    def text(self, text: str, finish: str | None = None, index: int = 0) -> Event:
        """The event that brings `text`."""
        return self.answer.event(
            {"delta": {"content": text}} if self.asked.chat else {"text": text}, finish, index
        )

    def delta(self, delta: Event | None, finish: str | None = None) -> Event:
        """An event of chat with any delta."""
        return self.answer.event({"delta": delta}, finish)

    def bare(self, **fields: Any) -> Event:
        """An event without choices but with `fields`."""
        return {**self.answer.facts, **fields}

    def usage(self, tokens: Any = None) -> Event:
        """The usage of the whole answer, or one that claims `tokens`."""
        usage = self.answer.usage(self.asked.output_tokens)
        return usage if tokens is None else {**usage, "completion_tokens": tokens}

    # ---- beats ----

    def words(self) -> list[Event]:
        """The events of the tokens."""
        return [self.text(self.word(index)) for index in range(self.asked.output_tokens)]

    def opening(self) -> bytes:
        """What comes before the first token: chat names the role."""
        return self.answer.opening()

    def closing(self, finish: str = "stop", usage: Event | None = None) -> bytes:
        """Why it ended, the usage (one of its own, or the right one if it was asked for), the end mark."""
        end = sse(self.text("", finish))
        if usage is not None or self.asked.usage_at_end:
            end += sse(self.bare(choices=[], usage=usage or self.usage()))
        return end + DONE

    def begun(self) -> list[Beat]:
        """The first tokens, after which something goes wrong."""
        return paced(self.opening(), self.words()[:BEFORE])

    def beats(self, events: Sequence[Event] | None = None, closing: bytes | None = None) -> list[Beat]:
        """The whole stream: an event a token, and the closing."""
        events = self.words() if events is None else events
        return ended(paced(self.opening(), events), self.closing() if closing is None else closing)

    # ---- steps ----

    def head(self, status: bytes = b"200 OK", fields: bytes = b"Transfer-Encoding: chunked\r\n") -> bytes:
        """The head of a stream."""
        return head(status, b"Content-Type: text/event-stream; charset=utf-8\r\n" + fields)

    def stream(self, beats: Iterable[Beat]) -> Steps:
        """A stream as it should be framed."""
        return chunked(self.head(), beats)

    def spoilt(self, edit: Callable[[bytes], bytes]) -> Steps:
        """The whole stream, the bytes of each beat changed."""
        return self.stream(beat._replace(data=edit(beat.data)) for beat in self.beats())

    def started(self) -> Steps:
        """The first tokens of a stream; half the response when none was asked for."""
        if self.asked.stream:
            yield from chunked(self.head(), self.begun(), last=b"")
            return
        body = self.answer.whole()
        yield Wait(self.span_ns)
        yield Send(head(b"200 OK", json_fields(body)) + body[: len(body) // 2])

    def well(self, status: bytes = b"200 OK", fields: bytes = b"") -> Steps:
        """The whole answer as it should be, with another status or more header fields."""
        if self.asked.stream:
            yield from chunked(self.head(status, b"Transfer-Encoding: chunked\r\n" + fields), self.beats())
            return
        body = self.answer.whole()
        yield Wait(self.span_ns)
        yield Send(head(status, json_fields(body) + fields) + body, self.asked.output_tokens)

    @property
    def span_ns(self) -> int:
        """How long the generation takes."""
        return FIRST_NS + GAP_NS * (self.asked.output_tokens - 1)


def sse(event: Any, kind: str = "") -> bytes:
    """An event of the stream: JSON, in one line."""
    name = f"event: {kind}\n".encode() if kind else b""
    return b"%bdata: %b\n\n" % (name, msgspec.json.encode(event))


def paced(opening: bytes, events: Sequence[Event], tokens: int = 1) -> list[Beat]:
    """One beat an event; the opening travels with the first."""
    beats = [Beat(GAP_NS, sse(event), tokens) for event in events]
    return [Beat(FIRST_NS, opening + beats[0].data, tokens), *beats[1:]]


def ended(beats: Sequence[Beat], closing: bytes) -> list[Beat]:
    """The closing travels with the last beat."""
    return [*beats[:-1], beats[-1]._replace(data=beats[-1].data + closing)]


def head(status: bytes, fields: bytes) -> bytes:
    """A response head."""
    return b"HTTP/1.1 %b\r\nServer: %b\r\n%b\r\n" % (status, SERVER, fields)


def json_fields(body: bytes) -> bytes:
    """The header fields of a JSON body."""
    return b"Content-Type: application/json\r\nContent-Length: %d\r\n" % len(body)


def chunked(
    head: bytes,
    beats: Iterable[Beat],
    frame: Callable[[bytes], bytes] = chunk,
    last: bytes = LAST_CHUNK,
) -> Steps:
    """A stream in chunks, one a beat; the last chunk travels with the last beat. An empty `last`: it is missing."""
    beats = list(beats)
    for at, beat in enumerate(beats):
        yield Wait(beat.pause_ns)
        end = last if at + 1 == len(beats) else b""
        yield Send(head + frame(beat.data) + end, beat.tokens)
        head = b""


def raw(head: bytes, beats: Iterable[Beat]) -> Steps:
    """A stream that is not in chunks."""
    for beat in beats:
        yield Wait(beat.pause_ns)
        yield Send(head + beat.data, beat.tokens)
        head = b""
