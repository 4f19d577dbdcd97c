"""What one response means: exact, event by event. Imports neither numpy nor polars (the preflight uses it).

One rule: the bytes and the content type decide whether it is a stream or one JSON document, not what was asked
for. The fast way for well-behaved streams is `read.decode`; it gives the same answers or leaves them to this module.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import msgspec

from loadstone.endpoints import Endpoint, Reply, _error
from loadstone.read import outcome, retry_after
from loadstone.recording import WireEnd
from loadstone.wire import sse
from loadstone.wire.http1 import Response, frame

EXCERPT_BYTES = 4096
FIRST_WORDS_BYTES = 120
SLICE_BYTES = 64 << 10
"""So much of a stream is looked at at a time."""
STREAM = "text/event-stream"
_FIELD = re.compile(rb"(?:data|event|id|retry)(?:[:\r\n]|\Z)|:")
"""How a line of a stream of events begins."""
_BLANK = re.compile(rb"(?:\xef\xbb\xbf)?\s*+")
_BARE = re.compile(rb"^[ \t]*+(error:|(?=\{))(.*+)((?:\n(?![ \t]*+(?:error:|\{)).*+)*+)", re.MULTILINE)
"""A line that may tell of an error, and those up to the next one, over which its JSON may go on."""


class Answer(NamedTuple):
    """A response understood.

    `reply` is None when there was nothing to understand: no 2xx status, no readable body. `ends[p]` counts the
    bytes of the body up to the end of event p, the positions being those of `Reply.output`; empty for a
    body that is no stream. `fault` says in what way the bytes break the protocol; from `read_answer`, why the
    answer is not a success, whatever the reason.
    """

    status: int
    headers: dict[str, str]
    reply: Reply | None = None
    ends: Sequence[int] = ()
    streamed: bool = False
    fault: str | None = None
    breach: str = outcome.PROTOCOL_ERROR
    """The outcome that the bytes alone make of the fault: that, not SSE, or too large."""
    excerpt: str = ""
    """The server's own words, or the first bytes of a body that was not understood."""
    body: bytes = b""
    compressed: str | None = None
    """The content encoding of the body, which was not asked for; None: identity."""
    unfinished_event: bool = False
    """The stream's last event was not ended by a blank line, and counted all the same."""
    retry_after_s: float | None = None
    """The wait that a response outside 2xx asked for; None when it did not, or not understandably."""


def read_answer(raw: bytes, endpoint: Endpoint, *, streaming: bool, complete: bool) -> Answer:
    """The meaning of a response given as the bytes received; its `fault` is one sentence, None for a success.

    `complete` tells that the connection ended as it should; a body without a length is whole only then. An answer
    that ended for a reason is a success even without output: the one token asked for may have no text.
    """
    response = frame([raw])
    answer = understand(response, endpoint, streaming=streaming, complete=complete)
    end = WireEnd.COMPLETE if complete or response.complete else WireEnd.CLOSED
    name, fault = outcome.decide(end, "", answer)
    spoke = name == outcome.EMPTY and answer.reply is not None and answer.reply.finish_reason
    return answer._replace(fault=None if spoke else fault)


def understand(response: Response, endpoint: Endpoint, *, streaming: bool, complete: bool) -> Answer:
    """The meaning of a framed response."""
    blank = Answer(
        response.status,
        response.headers,
        fault=response.fault,
        breach=outcome.TOO_LARGE if response.too_large else outcome.PROTOCOL_ERROR,
        body=response.body,
        compressed=response.compressed,
    )
    if not 200 <= response.status < 300:
        return blank._replace(
            excerpt=_error.of_text(_start(response.body, EXCERPT_BYTES)),
            retry_after_s=retry_after.seconds(response.headers),
        )
    complete = complete or response.complete
    if _is_stream(response, streaming):
        answer = _stream(blank, response, endpoint, complete)
    else:
        answer = _document(blank, response, endpoint, complete)
    return answer._replace(excerpt=_excerpt(_start(response.body, EXCERPT_BYTES))) if answer.fault else answer


def _is_stream(response: Response, streaming: bool) -> bool:
    """By how the body begins, since servers send either under the other's content type; else by that, or as asked."""
    start = _start(response.body)
    if start.startswith((b"{", b"[")):
        return False
    return bool(_FIELD.match(start)) or response.media_type == STREAM or (streaming and not start)


def _start(body: bytes, size: int = 64) -> bytes:
    """The first bytes of a body that say something."""
    found = _BLANK.match(body)
    at = found.end() if found else 0
    return body[at : at + size]


def _document(blank: Answer, response: Response, endpoint: Endpoint, complete: bool) -> Answer:
    """One JSON document; one that was cut off on the wire is no fault of the protocol."""
    try:
        body = _utf8(response.body.removeprefix(sse.BOM))
        return blank._replace(reply=endpoint.whole(msgspec.json.decode(body, type=endpoint.Answer)))
    except _error.NOT_JSON as error:
        if not complete or not _start(response.body) or blank.fault:
            return blank
        if isinstance(error, msgspec.ValidationError) or _start(response.body).startswith((b"{", b"[")):
            return blank._replace(
                fault=f"the body is not the JSON expected ({error}): {_first_words(response)}"
            )
        return _foreign(blank, response)


def _foreign(blank: Answer, response: Response) -> Answer:
    told = response.media_type or "no content type"
    fault = f"the body ({told}) is neither a stream of events nor JSON: {_first_words(response)}"
    return blank._replace(fault=fault, breach=outcome.NOT_SSE)


def _first_words(response: Response) -> str:
    return _excerpt(_start(response.body, FIRST_WORDS_BYTES))


def _stream(blank: Answer, response: Response, endpoint: Endpoint, complete: bool) -> Answer:
    """Every event up to the end mark. An unfinished last one counts when it can be read."""
    events = _Events(response.body, endpoint)
    reply = endpoint.fold(events)
    reply.error = reply.error or events.error or _bare_error(events.strays(), endpoint)
    reply.ended = reply.ended or events.ended
    fault = events.fault if events.ended else blank.fault or events.fault
    field = _FIELD.match(_start(response.body) or b":")
    if complete and not (events.end or fault or reply.error or field):
        return _foreign(blank, response)  # nothing but lines that are no field of an event
    return blank._replace(
        reply=reply, ends=events.ends, streamed=True, fault=fault, unfinished_event=not events.counted
    )


class _Events:
    """The decoded events of one stream, in one pass that holds one of them at a time, and what it tells beside them."""

    def __init__(self, body: bytes, endpoint: Endpoint) -> None:
        self.ends = array("q")
        """Those of the events given out."""
        self.error: str | None = None
        self.fault: str | None = None
        self.ended = False
        """The end mark came; nothing was looked at after it."""
        self.counted = True
        """The last event that counted was whole."""
        self.end = 0
        """That of the last event of whatever kind."""
        self._body = body
        self._parser = sse.Parser()
        self._decode = msgspec.json.Decoder[Any](endpoint.Event).decode
        self._mark = endpoint.END_MARK

    def __iter__(self) -> Iterator[Any]:
        mark, decode, note = self._mark, self._decode, self.ends.append
        for event in self._parsed():
            data, whole = event.data, event.whole
            self.end = event.end
            if mark and data.strip() == mark:
                self.ended, self.counted = True, whole
                return
            if event.kind == "error":
                self.error = self.error or _error.of_text(data) or _error.WORDLESS
                self.counted = whole
            elif data and not data.isspace():
                try:
                    decoded = decode(_utf8(data))
                except _error.NOT_JSON as reason:
                    if whole and self.fault is None:
                        told = _excerpt(data[:FIRST_WORDS_BYTES])
                        self.fault = f"an event is not the JSON expected ({reason}): {told}"
                    continue
                note(event.end)
                self.counted = whole
                yield decoded

    def strays(self) -> list[bytes]:
        """Lines beside the events, up to the end mark."""
        return [line for line, end in self._parser.strays if not self.ended or end <= self.end]

    def _parsed(self) -> Iterator[sse.Event]:
        for at in range(0, len(self._body), SLICE_BYTES):
            yield from self._parser.feed(self._body[at : at + SLICE_BYTES])
        yield from self._parser.close()


def _bare_error(strays: list[bytes], endpoint: Endpoint) -> str | None:
    """The error in lines beside the events, when it was written as `error: {...}` or without any field."""
    for found in _BARE.finditer(b"\n".join(strays)):
        field, line, more = found.groups()
        for text in (line, line + more):
            with suppress(*_error.NOT_JSON):
                value = msgspec.json.decode(_utf8(text), type=Any if field else endpoint.Event)
                told = _error.Fields(error=value) if field else None
                error = _error.in_band(told, has_choices=False) if told else endpoint.fold([value]).error
                if error:
                    return error
                break
        else:
            if field and line.strip():
                return _excerpt(line)
    return None


def _utf8(data: bytes) -> bytes:
    """`data` with what is not UTF-8 replaced, as the standard for event streams asks."""
    if data.isascii():
        return data
    try:
        data.decode()
    except UnicodeDecodeError:
        return data.decode("utf-8", "replace").encode()
    return data


def _excerpt(body: bytes) -> str:
    return body[:EXCERPT_BYTES].decode("utf-8", "replace").strip()
