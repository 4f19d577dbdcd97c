"""What becomes of the connection around good answers, and of the whole server."""

from __future__ import annotations

from loadstone.sim.faults.family import Family
from loadstone.sim.faults.script import Script, head, raw
from loadstone.sim.faults.steps import Close, Die, Reset, Send, Steps, Wait

FAMILY = Family("Connections")
BACK_AFTER_NS = 1_000_000_000


@FAMILY.fault("ok")
def connection_close(script: Script) -> Steps:
    """Says `Connection: close` and closes after the answer."""
    yield from script.well(fields=b"Connection: close\r\n")
    yield Close()


@FAMILY.fault("ok")
def closes_idle(script: Script) -> Steps:
    """Closes after the answer without having said so."""
    yield from script.well()
    yield Close()


@FAMILY.fault("ok")
def closes_reused(script: Script) -> Steps | None:
    """Closes a kept-alive connection when the next request comes on it (the reuse race); answers well on a new one."""
    return script.well() if script.first else iter([Close()])


@FAMILY.fault("ok")
def resets_reused(script: Script) -> Steps:
    """Breaks a kept-alive connection (RST) when the next request comes on it; answers well on a new one."""
    return script.well() if script.first else iter([Reset()])


@FAMILY.fault("ok")
def stray_bytes(script: Script) -> Steps:
    """Sends bytes that belong to nothing 5 ms after the answer."""
    yield from script.well()
    yield Wait(5_000_000)
    yield Send(b"stray bytes\r\n\r\n")


@FAMILY.fault("ok")
def stray_answer(script: Script) -> Steps:
    """Sends a second answer that nobody asked for, in the segment that ends the first."""
    stray = b'{"error":"meant for somebody else"}'
    fields = b"Content-Type: application/json\r\nContent-Length: %d\r\n" % len(stray)
    steps = list(script.well())
    *others, last = steps
    assert isinstance(last, Send)
    yield from others
    yield Send(last.data + head(b"500 Internal Server Error", fields) + stray, last.tokens)


@FAMILY.fault("ok")
def http_1_0(script: Script) -> Steps:
    """Answers as HTTP/1.0: neither length nor chunks, the end is the close."""
    if script.asked.stream:
        yield from raw(_old(b"text/event-stream"), script.beats())
    else:
        yield Wait(script.span_ns)
        yield Send(_old(b"application/json") + script.answer.whole(), script.asked.output_tokens)
    yield Close()


@FAMILY.fault("ok", needs="stream")
def close_delimited(script: Script) -> Steps:
    """Answers as HTTP/1.1 with neither length nor chunks; the end is the close."""
    yield from raw(script.head(fields=b"Connection: close\r\n"), script.beats())
    yield Close()


def _old(kind: bytes) -> bytes:
    return b"HTTP/1.0 200 OK\r\nContent-Type: %b\r\n\r\n" % kind


@FAMILY.fault("connect-refused", whole_server=True)
def dies_after(script: Script) -> Steps | None:
    """Closes every connection at the request after the 20th (`dies-after:N`: the N-th) and refuses all from then on."""
    return iter([Die(None)]) if script.number == script.after + 1 else None


@FAMILY.fault("connect-refused", whole_server=True)
def restarts(script: Script) -> Steps | None:
    """Does the same, but is back after a second and answers well from then on (`restarts:N`)."""
    return iter([Die(BACK_AFTER_NS)]) if script.number == script.after + 1 else None
