"""What one response means: exact, event by event. Imports neither numpy nor polars (the preflight uses it).

One rule: the bytes and the content type decide whether it is a stream or one JSON document, not what was asked
for. The fast way for well-behaved streams is `read.decode`; it gives the same answers or leaves them to this module.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from loadstone.endpoints import Endpoint, Reply, _error
from loadstone.read import outcome
from loadstone.recording import WireEnd
from loadstone.wire import sse
from loadstone.wire.http1 import Response, frame

EXCERPT_BYTES = 4096
STREAM = "text/event-stream"


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

    `complete` tells that the connection ended as it should; a body without a length is whole only then.
    """
    response = frame([raw])
    answer = understand(response, endpoint, streaming=streaming, complete=complete)
    end = WireEnd.COMPLETE if complete or response.complete else WireEnd.CLOSED
    return answer._replace(fault=outcome.decide(end, "", answer)[1])


def understand(response: Response, endpoint: Endpoint, *, streaming: bool, complete: bool) -> Answer:
    """The meaning of a framed response."""
    blank = Answer(response.status, response.headers, fault=response.fault, body=response.body)
    if not 200 <= response.status < 300:
        return blank._replace(excerpt=_error.of_text(response.body[:EXCERPT_BYTES]))
    if _is_stream(response, streaming):
        answer = _stream(blank, response.body, endpoint)
    else:
        answer = _document(blank, response, endpoint, complete or response.complete)
    return answer._replace(excerpt=_excerpt(response.body)) if answer.fault else answer


def _is_stream(response: Response, streaming: bool) -> bool:
    """By how the body begins, since servers send either under the other's content type; else by that, or as asked."""
    start = response.body[:64].removeprefix(sse.BOM).lstrip()
    if start.startswith((b"{", b"[")):
        return False
    if start.startswith((b"data:", b"event:", b"id:", b"retry:", b":")):
        return True
    return response.media_type == STREAM or (streaming and not start)


def _document(blank: Answer, response: Response, endpoint: Endpoint, complete: bool) -> Answer:
    """One JSON document; one that was cut off on the wire is no fault of the protocol."""
    try:
        return blank._replace(
            reply=endpoint.whole(msgspec.json.decode(_utf8(response.body), type=endpoint.Answer))
        )
    except _error.NOT_JSON as error:
        if not complete or not response.body or blank.fault:
            return blank
        told = response.media_type or "no content type"
        return blank._replace(fault=f"the body ({told}) is neither a stream nor the JSON expected: {error}")


def _stream(blank: Answer, body: bytes, endpoint: Endpoint) -> Answer:
    """Every event up to the end mark. An unfinished last one counts when it can be read."""
    decode = msgspec.json.Decoder[Any](endpoint.Event).decode
    parser = sse.Parser()
    events, ends = [], []
    error, fault, ended = None, blank.fault, False
    for event in [*parser.feed(body), *parser.close()]:
        if endpoint.END_MARK and event.data == endpoint.END_MARK:
            ended = True
            break
        if event.kind == "error":
            error = error or _error.of_text(event.data)
            continue
        try:
            events.append(decode(_utf8(event.data)))
            ends.append(event.end)
        except _error.NOT_JSON as reason:
            if event.whole:
                fault = fault or f"an event is not the JSON expected ({reason}): {_excerpt(event.data[:120])}"
    reply = endpoint.fold(events)
    reply.error = reply.error or error
    reply.ended = reply.ended or ended
    return blank._replace(reply=reply, ends=ends, streamed=True, fault=fault)


def _utf8(data: bytes) -> bytes:
    """`data` with what is not UTF-8 replaced, as the standard for event streams asks."""
    try:
        data.decode()
    except UnicodeDecodeError:
        return data.decode("utf-8", "replace").encode()
    return data


def _excerpt(body: bytes) -> str:
    return body[:EXCERPT_BYTES].decode("utf-8", "replace").strip()
