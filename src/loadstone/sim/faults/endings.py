"""Errors in the body, and answers that end wrongly, late or not at all."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from loadstone.sim.faults.family import Family, Needs, Play
from loadstone.sim.faults.script import (
    DONE,
    FIRST_NS,
    GAP_NS,
    Beat,
    Script,
    chunked,
    head,
    json_fields,
    sse,
)  # fmt: skip
from loadstone.sim.faults.steps import Close, Hold, IgnoreClose, Reset, Send, Step, Steps, Wait
from loadstone.sim.http import chunk

FAMILY = Family("Errors and endings")
ERROR = {"message": "the engine ran out of memory", "type": "InternalServerError", "code": 500}
SECOND_NS = 1_000_000_000
HTML = b"<!DOCTYPE html><html><body><h1>It works!</h1></body></html>"


# ---- errors under status 200 ----


@FAMILY.fault("in-band-error", needs="stream")
def error_first(script: Script) -> Steps:
    """Sends an error object as the first event of the stream."""
    return script.stream([Beat(FIRST_NS, sse({"error": ERROR}) + DONE)])


def _after_some(spelt: Callable[[], bytes]) -> Play:
    """After three tokens an error, and the end of the stream."""
    return lambda script: script.stream([*script.begun(), Beat(GAP_NS, spelt())])


for _name, _does, _spelt in (
    ("error-mid", 'Sends `{"error":{...}}` after three tokens.', lambda: sse({"error": ERROR}) + DONE),
    ("error-string", 'Sends `{"error":"..."}` after three tokens.', lambda: sse({"error": ERROR["message"]})),
    (
        "error-event",
        "Sends `event: error` with a message after three tokens.",
        lambda: sse({"message": ERROR["message"]}, "error"),
    ),
    (
        "error-object",
        'Sends `{"object":"error",...}` after three tokens.',
        lambda: sse({"object": "error", **ERROR}),
    ),
    (
        "error-bare",
        "Sends the JSON of an error, in no event, after three tokens.",
        lambda: msgspec.json.encode({"error": ERROR}) + b"\n",
    ),
):
    FAMILY.add(_name, _does, "in-band-error", _after_some(_spelt), needs="stream")


@FAMILY.fault("in-band-error")
def error_json(script: Script) -> Steps:
    """Answers 200 with the JSON of an error."""
    return _body(b"application/json", msgspec.json.encode({"error": ERROR}))


@FAMILY.fault("not-sse")
def html(script: Script) -> Steps:
    """Answers 200 with a page of HTML."""
    return _body(b"text/html", HTML)


@FAMILY.fault("empty")
def empty(script: Script) -> Steps:
    """Answers 200 with an empty body."""
    return _body(b"text/event-stream" if script.asked.stream else b"application/json", b"")


@FAMILY.fault("empty", needs="stream")
def done_only(script: Script) -> Steps:
    """Sends nothing but `[DONE]`."""
    return script.stream([Beat(FIRST_NS, DONE)])


@FAMILY.fault("ok", needs="stream")
def json_for_stream(script: Script) -> Steps:
    """Answers a request for a stream with one JSON body."""
    body = script.answer.whole()
    yield Wait(script.span_ns)
    yield Send(head(b"200 OK", json_fields(body)) + body, script.asked.output_tokens)


@FAMILY.fault("ok")
def stream_for_json(script: Script) -> Steps:
    """Answers with a stream, also when none was asked for."""
    return script.stream(script.beats())


def _body(kind: bytes, body: bytes) -> Steps:
    yield Wait(FIRST_NS)
    yield Send(head(b"200 OK", b"Content-Type: %b\r\nContent-Length: %d\r\n" % (kind, len(body))) + body)


# ---- the end mark ----


@FAMILY.fault("ok", needs="stream")
def done_missing(script: Script) -> Steps:
    """Finishes, but sends no `[DONE]`."""
    return script.stream(script.beats(closing=script.closing().removesuffix(DONE)))


@FAMILY.fault("ok", needs="stream")
def done_then_open(script: Script) -> Steps:
    """Sends `[DONE]` but neither the last chunk nor anything else, and keeps the connection open."""
    yield from chunked(script.head(), script.beats(), last=b"")
    yield Hold()


@FAMILY.fault("ok", needs="stream")
def done_then_close(script: Script) -> Steps:
    """Sends `[DONE]` and closes without the last chunk."""
    yield from chunked(script.head(), script.beats(), last=b"")
    yield Close()


@FAMILY.fault("ok", needs="stream")
def done_then_reset(script: Script) -> Steps:
    """Sends `[DONE]` and breaks the connection 20 ms later, without the last chunk."""
    yield from chunked(script.head(), script.beats(), last=b"")
    yield Wait(GAP_NS)
    yield Reset()


@FAMILY.fault("ok", needs="stream")
def more_after_done(script: Script) -> Steps:
    """Sends another event and `[DONE]` once more after `[DONE]`."""
    rest = sse(script.text(" more")) + DONE
    return script.stream(script.beats(closing=script.closing() + rest))


# ---- cut short ----


@FAMILY.fault("truncated", needs="stream")
def eof(script: Script) -> Steps:
    """Ends the stream properly after three tokens, with neither finish reason nor `[DONE]`."""
    return script.stream(script.begun())


@FAMILY.fault("truncated", needs="stream")
def eof_mid_event(script: Script) -> Steps:
    """Ends the stream properly within an event, after three tokens."""
    piece = sse(script.text(" lost"))[:30]
    return script.stream([*script.begun(), Beat(GAP_NS, piece)])


def _then(name: str, does: str, outcome: str, *steps: Step, needs: Needs = "") -> None:
    """Declares: three tokens (half of a body), then `steps`."""

    def play(script: Script) -> Steps:
        yield from script.started()
        yield from steps

    FAMILY.add(name, does, outcome, play, needs=needs)


_then(
    "reset", "Breaks the connection in mid-answer (RST), after three tokens.", "reset", Wait(GAP_NS), Reset()
)
_then(
    "close", "Closes in mid-answer, after three tokens, between two chunks.", "reset", Wait(GAP_NS), Close()
)


@FAMILY.fault("reset", needs="stream")
def chunk_cut(script: Script) -> Steps:
    """Closes within a chunk, after three tokens."""
    yield from script.started()
    yield Wait(GAP_NS)
    yield Send(chunk(sse(script.text(" lost")))[:-10])
    yield Close()


@FAMILY.fault("reset")
def close_first(script: Script) -> Steps:
    """Closes every connection that a request comes on, without an answer."""
    yield Wait(FIRST_NS)
    yield Close()


@FAMILY.fault("reset")
def reset_first(script: Script) -> Steps:
    """Breaks every connection that a request comes on (RST), without an answer."""
    yield Wait(FIRST_NS)
    yield Reset()


@FAMILY.fault("reset")
def close_in_head(script: Script) -> Steps:
    """Closes within the head of the answer."""
    yield Wait(FIRST_NS)
    yield Send(script.head()[:40])
    yield Close()


# ---- without end ----


_then(
    "stall",
    "Goes silent after three tokens and keeps the connection open.",
    "timeout-idle",
    Hold(),
    needs="stream",
)


@FAMILY.fault("timeout-first-token", unstreamed="timeout-total")
def never_replies(script: Script) -> Steps:
    """Reads the request and never sends a byte."""
    yield Hold()


@FAMILY.fault("timeout-first-token", unstreamed="timeout-idle")
def head_stalls(script: Script) -> Steps:
    """Sends the beginning of the head, and nothing more."""
    yield Wait(FIRST_NS)
    yield Send(script.head()[:40])
    yield Hold()


@FAMILY.fault("timeout-first-token", needs="stream")
def head_only(script: Script) -> Steps:
    """Sends the head of the stream at once, and nothing more."""
    yield Send(script.head())
    yield Hold()


@FAMILY.fault("timeout-first-token", needs="chat")
def role_only(script: Script) -> Steps:
    """Sends the head and the role, and nothing more."""
    yield Wait(FIRST_NS)
    yield Send(script.head() + chunk(script.opening()))
    yield Hold()


@FAMILY.fault("timeout-first-token", unstreamed="timeout-total")
def drip_head(script: Script) -> Steps:
    """Sends the head one byte a second, and header fields without end."""
    for at in range(len(script.head()) - 2):
        yield Wait(SECOND_NS)
        yield Send(script.head()[at : at + 1])
    while True:
        for byte in b"X-Slow: 1\r\n":
            yield Wait(SECOND_NS)
            yield Send(bytes([byte]))


@FAMILY.fault("timeout-total", needs="stream")
def drip(script: Script) -> Steps:
    """Sends three tokens, then a comment without end, one byte a second."""
    yield from script.started()
    data = b":"
    while True:
        yield Wait(SECOND_NS)
        yield Send(chunk(data))
        data = b"."


@FAMILY.fault("timeout-first-token", needs="stream")
def pings_only(script: Script) -> Steps:
    """Sends a comment every 100 ms, and no token ever."""
    yield Wait(FIRST_NS)
    yield Send(script.head())
    while True:
        yield Send(chunk(b": ping\n\n"))
        yield Wait(SECOND_NS // 10)


@FAMILY.fault("timeout-total", needs="stream")
def tokens_forever(script: Script) -> Steps:
    """Sends a token every 20 ms and never ends."""
    return _forever(script)


def _forever(script: Script) -> Steps:
    yield from script.started()
    while True:
        yield Wait(GAP_NS)
        yield Send(chunk(sse(script.text(" on"))), 1)


@FAMILY.fault("timeout-total", needs="stream")
def ignores_close(script: Script) -> Steps:
    """Sends a token every 20 ms, never ends, and goes on after the client has closed."""
    yield IgnoreClose()
    yield from _forever(script)
