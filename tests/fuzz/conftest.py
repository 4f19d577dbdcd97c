"""Responses of every kind, as bytes: what the tests here cut, break off, damage and compress."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest

from loadstone import registry
from loadstone.read.answer import Answer, understand
from loadstone.read.decode import Reader
from loadstone.read.outcome import OUTCOMES, SUCCESSES, decide
from loadstone.recording import WireEnd
from loadstone.wire.http1 import frame


class Canonical(NamedTuple):
    """One response: its endpoint, its body, and what becomes of it when all of it arrives."""

    name: str
    endpoint: Any
    body: bytes
    outcome: str
    media: bytes = b"text/event-stream"
    status: int = 200

    def head(self, more: bytes = b"") -> bytes:
        """The HTTP head, without the line that ends it."""
        return b"HTTP/1.1 %d X\r\nContent-Type: %s\r\n%s" % (self.status, self.media, more)

    def raw(self) -> bytes:
        """With a length."""
        return self.head(b"Content-Length: %d\r\n\r\n" % len(self.body)) + self.body

    def chunked(self, step: int = 97) -> bytes:
        """In chunks that end anywhere."""
        pieces = [self.body[at : at + step] for at in range(0, len(self.body), step)]
        chunks = b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces)
        return self.head(b"Transfer-Encoding: chunked\r\n\r\n") + chunks + b"0\r\n\r\n"


def judged(reads: list[bytes], endpoint: Any, end: WireEnd = WireEnd.COMPLETE) -> tuple[str, Answer]:
    """The outcome and the answer, after the statements that hold for every response whatsoever."""
    response = frame(reads)
    assert len(response.arrived) == len(reads)
    assert response.arrived == sorted(response.arrived)
    assert not reads or response.arrived[-1] == len(response.body)
    complete = end == WireEnd.COMPLETE
    exact = understand(response, endpoint, streaming=True, complete=complete)
    assert Reader(endpoint, streaming=True)(response, complete) == exact
    name, fault = decide(end, "", exact)
    assert name in OUTCOMES
    assert (fault is None) is (name in SUCCESSES)
    assert fault is None or fault == " ".join(fault.split()) != ""
    reply = exact.reply
    if reply is not None and exact.streamed:
        assert all(0 <= position < len(exact.ends) for position in reply.output)
        assert reply.output == sorted(reply.output)
        assert list(exact.ends) == sorted(exact.ends)
        assert reply.choice is None or len(reply.choice) == len(reply.output)
        assert reply.tokens_after is None or len(reply.tokens_after) == len(reply.output)
        assert (reply.choices > 0) is reply.brought is bool(reply.output)
    return name, exact


def _of_endpoints() -> list[Canonical]:
    found = []
    for name in registry.names("endpoints"):
        endpoint = registry.load("endpoints", name)
        for example in endpoint.EXAMPLES:
            reply = example.reply
            outcome = {None: "ok", "length": "ok-length", "tool_calls": "ok-tool-calls"}.get(
                reply.finish_reason, "ok"
            )
            media = b"text/event-stream" if example.ask.streaming else b"application/json"
            found.append(
                Canonical(
                    f"{name}, {example.name}",
                    endpoint,
                    example.response,
                    "in-band-error" if reply.error else outcome,
                    media,
                )
            )
    return found


_CHAT = registry.load("endpoints", "chat")
_STREAM = _CHAT.EXAMPLES[0].response
_WHOLE = b'{"choices":[{"message":{"content":"\xe2\x82\xac"},"finish_reason":"stop"}]}'
RESPONSES = [
    *_of_endpoints(),
    Canonical("carriage returns", _CHAT, _STREAM.replace(b"\n", b"\r"), "ok"),
    Canonical("a byte order mark", _CHAT, b"\xef\xbb\xbf" + _STREAM, "ok"),
    Canonical("comments, ids, kinds", _CHAT, b": x\nid: 1\nretry: 2\nevent: message\n" + _STREAM, "ok"),
    Canonical("several bytes a character", _CHAT, _STREAM.replace(b"Hel", b"\xf0\x9f\x98\x80\xe2\x82\xac"), "ok"),
    Canonical("bytes that are not UTF-8", _CHAT, _STREAM.replace(b"Hel", b"\xf0\x9f"), "ok"),
    Canonical("the last event unfinished", _CHAT, _STREAM.rstrip(), "ok"),
    Canonical("no end mark", _CHAT, _STREAM[: _STREAM.index(b"data: [DONE]")], "ok"),
    Canonical("an event of the kind error", _CHAT, b'event: error\ndata: {"message":"no"}\n\n', "in-band-error"),
    Canonical("an error without data:", _CHAT, _STREAM[:90] + b'\n\n{"error":"no"}\n', "in-band-error"),
    Canonical("one that is not JSON", _CHAT, b"data: not-json\n\n" + _STREAM, "protocol-error"),
    Canonical("the end mark alone", _CHAT, b"data: [DONE]\n\n", "empty"),
    Canonical("nothing", _CHAT, b"", "empty"),
    Canonical("a document", _CHAT, _WHOLE, "ok", b"application/json"),
    Canonical("a document as a stream", _CHAT, _WHOLE, "ok"),
    Canonical("an error as a document", _CHAT, b'{"error":{"message":"no"}}', "in-band-error"),
    Canonical("a page", _CHAT, b"<!doctype html><h1>Welcome</h1>", "not-sse", b"text/html"),
    Canonical("too many", _CHAT, b'{"error":"slow"}', "http-rate-limited", b"application/json", 429),
]  # fmt: skip


@pytest.fixture(scope="session", params=RESPONSES, ids=[response.name for response in RESPONSES])
def canonical(request):
    """Each of the responses in turn."""
    return request.param


@pytest.fixture(scope="session")
def responses():
    """All of them."""
    return RESPONSES


@pytest.fixture(scope="session", name="judged")
def _judged():
    return judged
