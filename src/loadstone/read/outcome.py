"""The one outcome of a request: its name, and how it is decided.

Every planned request ends in exactly one of these; their counts are asserted to add up. The decision is a
pure function of how the flight ended on the wire and of what the answer means; it has no clock.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from loadstone.recording import WireEnd

if TYPE_CHECKING:
    from loadstone.endpoints import Reply
    from loadstone.read.answer import Answer

OK = "ok"
OK_LENGTH = "ok-length"
OK_TOOL_CALLS = "ok-tool-calls"
TRUNCATED = "truncated"
RESET = "reset"
IN_BAND_ERROR = "in-band-error"
EMPTY = "empty"
NOT_SSE = "not-sse"
PROTOCOL_ERROR = "protocol-error"
TOO_LARGE = "too-large"
HTTP_AUTH = "http-auth"
HTTP_NOT_FOUND = "http-not-found"
HTTP_TIMEOUT = "http-timeout"
HTTP_TOO_LARGE = "http-too-large"
HTTP_INVALID = "http-invalid"
HTTP_RATE_LIMITED = "http-rate-limited"
HTTP_REDIRECT = "http-redirect"
HTTP_SERVER_ERROR = "http-server-error"
HTTP_ERROR = "http-error"
CONNECT_REFUSED = "connect-refused"
CONNECT = "connect"
TLS = "tls"
TIMEOUT_CONNECT = "timeout-connect"
TIMEOUT_FIRST_TOKEN = "timeout-first-token"
TIMEOUT_IDLE = "timeout-idle"
TIMEOUT_TOTAL = "timeout-total"
CANCELLED = "cancelled"
CANCELLED_AS_PLANNED = "cancelled-as-planned"
CUT = "cut"
CLIENT_FAULT = "client-fault"
NOT_SENT = "not-sent"

OUTCOMES = {
    OK: "a whole answer that ended by itself",
    OK_LENGTH: "a whole answer that ended at the length asked for",
    OK_TOOL_CALLS: "a whole answer that ended by calling tools",
    TRUNCATED: "the answer ended properly on the wire without having finished",
    RESET: "the connection broke, or was closed, before the answer was complete",
    IN_BAND_ERROR: "an error inside a response of status 2xx",
    EMPTY: "a response of status 2xx that holds no output",
    NOT_SSE: "a body that is neither a stream of events nor JSON",
    PROTOCOL_ERROR: "what came back is not what the endpoint's protocol says",
    TOO_LARGE: "more bytes than an answer may have (--max-response-bytes)",
    HTTP_AUTH: "HTTP 401 or 403: the key is missing, wrong or not enough",
    HTTP_NOT_FOUND: "HTTP 404: no such path or model",
    HTTP_TIMEOUT: "HTTP 408: the server gave the request up",
    HTTP_TOO_LARGE: "HTTP 413: the request is too large",
    HTTP_INVALID: "HTTP 400 or 422: the server does not take the request",
    HTTP_RATE_LIMITED: "HTTP 429: too many requests",
    HTTP_REDIRECT: "HTTP 3xx that is not followed: another host, or a second one",
    HTTP_SERVER_ERROR: "HTTP 5xx",
    HTTP_ERROR: "any other HTTP status outside 2xx",
    CONNECT_REFUSED: "nobody listens at the address",
    CONNECT: "no connection was made for another reason: unreachable, refused by the proxy",
    TLS: "the TLS handshake failed",
    TIMEOUT_CONNECT: "no connection within the limit",
    TIMEOUT_FIRST_TOKEN: "no output token within the limit",
    TIMEOUT_IDLE: "the answer had begun, then nothing came within the limit",
    TIMEOUT_TOTAL: "the answer was not complete within the limit",
    CANCELLED: "cancelled by us before its time: interrupted, or the run was given up",
    CANCELLED_AS_PLANNED: "cancelled by us as asked (--request-cancellation-rate)",
    CUT: "still under way when the run's grace period ended",
    CLIENT_FAULT: "the client's own fault; says nothing of the server",
    NOT_SENT: "planned, but never sent",
}
SUCCESSES = frozenset({OK, OK_LENGTH, OK_TOOL_CALLS})
CENSORED = frozenset({CANCELLED, CANCELLED_AS_PLANNED, CUT})
"""Still under way when we ended them: neither success nor failure of the server."""
FAILURES = frozenset(OUTCOMES) - SUCCESSES - CENSORED - {CLIENT_FAULT, NOT_SENT}
"""Failures of the server. The client's own faults and what was never sent say nothing of it."""

FAULT_CHARS = 300
"""Longest fault kept in a table."""

_WITHOUT_ANSWER = {
    WireEnd.CLIENT: CLIENT_FAULT,
    WireEnd.CONNECT: CONNECT,
    WireEnd.REFUSED: CONNECT_REFUSED,
    WireEnd.TLS: TLS,
    WireEnd.TIMEOUT_CONNECT: TIMEOUT_CONNECT,
    WireEnd.NOT_SENT: NOT_SENT,
}
_ENDED_BY_US = {
    WireEnd.TIMEOUT_FIRST_TOKEN: TIMEOUT_FIRST_TOKEN,
    WireEnd.TIMEOUT_IDLE: TIMEOUT_IDLE,
    WireEnd.TIMEOUT_TOTAL: TIMEOUT_TOTAL,
    WireEnd.TOO_LARGE: TOO_LARGE,
    WireEnd.CANCELLED: CANCELLED,
    WireEnd.CANCELLED_AS_PLANNED: CANCELLED_AS_PLANNED,
    WireEnd.CUT: CUT,
}
_WAITED = frozenset(_ENDED_BY_US) - {WireEnd.TOO_LARGE}
"""Ends that we made because something did not come."""
_OF_STATUS = {
    400: HTTP_INVALID,
    401: HTTP_AUTH,
    403: HTTP_AUTH,
    404: HTTP_NOT_FOUND,
    408: HTTP_TIMEOUT,
    413: HTTP_TOO_LARGE,
    422: HTTP_INVALID,
    429: HTTP_RATE_LIMITED,
}
_OF_STATUS_CLASS = {3: HTTP_REDIRECT, 5: HTTP_SERVER_ERROR}
_AT_LENGTH = frozenset({"length", "max_tokens"})
_CALLS_TOOLS = frozenset({"tool_calls", "function_call", "tool_use"})


def decide(end: WireEnd, words: str, answer: Answer) -> tuple[str, str | None]:
    """The outcome of one flight and its fault: one sentence, None for a success.

    `end` and `words` are what the worker saw, `answer` what the bytes mean. What the server said itself goes
    before what the wire did, and a whole answer is a success even when the connection breaks after it. A stream that
    had said why it ends, with its output, is whole as well when we ended it in the wait for its end mark.
    """
    name, fault = _decide(end, words, answer)
    return name, None if name in SUCCESSES else sentence(fault) or OUTCOMES[name]


def _decide(end: WireEnd, words: str, answer: Answer) -> tuple[str, str]:
    reply = answer.reply
    if end in _WITHOUT_ANSWER:
        return _WITHOUT_ANSWER[end], words
    if reply is not None and reply.error:
        return IN_BAND_ERROR, reply.error
    if answer.status and not 200 <= answer.status < 300:
        return _refused(words, answer)
    if end in _ENDED_BY_US and not (end in _WAITED and _is_over(answer)):
        return _ENDED_BY_US[end], words
    if answer.fault:
        return answer.breach, answer.fault
    if end == WireEnd.PROTOCOL:
        return PROTOCOL_ERROR, words or "not HTTP/1.1"
    if reply is not None and (reply.ended or reply.finish_reason):
        return _finished(reply)
    if end == WireEnd.RESET:
        return RESET, words or "the connection was reset"
    if end == WireEnd.CLOSED:
        return RESET, words or _closed(answer)
    return _unfinished(words, answer)


def _is_over(answer: Answer) -> bool:
    """Whether a stream has brought all that it was to bring; at most its end mark is missing."""
    reply = answer.reply
    told = reply is not None and reply.brought and bool(reply.ended or reply.finish_reason)
    return told and answer.streamed and answer.fault is None


def _refused(words: str, answer: Answer) -> tuple[str, str]:
    """A status outside 2xx, in the server's own words."""
    status = answer.status
    name = _OF_STATUS.get(status) or _OF_STATUS_CLASS.get(status // 100, HTTP_ERROR)
    if name == HTTP_REDIRECT:
        to = answer.headers.get("location")
        said = words or (f"a redirect to {to}" if to else "") or answer.excerpt
    else:
        said = answer.excerpt or answer.fault or ""
    wait = "" if answer.retry_after_s is None else f" (retry after {answer.retry_after_s:g} s)"
    return name, f"HTTP {status}{wait}: {said or 'no body'}"


def _finished(reply: Reply) -> tuple[str, str]:
    """An answer that is over."""
    reason = (reply.finish_reason or "").lower()
    if not reply.brought:
        why = f" ({reply.finish_reason})" if reason else ""
        return EMPTY, f"empty: the answer ended{why} without any output{_claim(reply)}"
    if reason in _CALLS_TOOLS:
        return OK_TOOL_CALLS, ""
    return (OK_LENGTH if reason in _AT_LENGTH else OK), ""


def _closed(answer: Answer) -> str:
    """The connection was closed before the answer was complete by its own framing."""
    when = "before it was complete" if answer.status else "without an answer"
    return f"the server closed the connection {when}"


def _unfinished(words: str, answer: Answer) -> tuple[str, str]:
    """A clean end on the wire, but the answer did not say that it is over."""
    reply = answer.reply
    if reply is not None and reply.brought:
        return TRUNCATED, "the answer ended without a finish reason and without an end mark"
    if not answer.status:
        return PROTOCOL_ERROR, words or "not HTTP/1.1: there is no status line"
    return EMPTY, f"empty: the response holds no output{_claim(reply)}"


def _claim(reply: Reply | None) -> str:
    claimed = reply.usage.completion_tokens if reply is not None and reply.usage is not None else None
    return f"; its usage claims {claimed} tokens" if claimed else ""


_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]")
_VARYING = re.compile(r"\b[0-9a-f]*\d[0-9a-f]*\b|\d+", re.IGNORECASE)


def sentence(text: str) -> str:
    r"""`text` on one line, control and direction characters as escapes (`\x1b`), at most `FAULT_CHARS` long."""
    line = " ".join(text[: FAULT_CHARS * 4].split())
    line = _CONTROL.sub(lambda found: found[0].encode("unicode_escape").decode(), line)
    return line if len(line) <= FAULT_CHARS else line[: FAULT_CHARS - 1] + "…"


def kind(fault: str) -> str:
    """`fault` with its numbers and hexadecimal ids as `#`, so that faults of one kind are counted together."""
    return _VARYING.sub("#", fault)
