"""HTTP statuses: refusals with their bodies, success by other numbers, interim answers, redirects."""

from __future__ import annotations

from http import HTTPStatus

import msgspec

from loadstone.sim.faults.family import Family, Play
from loadstone.sim.faults.script import FIRST_NS, Script, head
from loadstone.sim.faults.steps import Send, Steps, Wait

FAMILY = Family("HTTP statuses")
HTML = b"<!DOCTYPE html><html><body><h1>Something went wrong</h1><hr>proxy/1.0</body></html>"
REDIRECTED = "redirected=1"
"""The query by which a redirected request is known."""


def refusal(status: int, body: bytes, kind: bytes = b"application/json", fields: bytes = b"") -> Steps:
    """A status and a body after 70 ms."""
    yield Wait(FIRST_NS)
    line = b"%d %b" % (status, HTTPStatus(status).phrase.encode())
    length = b"Content-Type: %b\r\nContent-Length: %d\r\n" % (kind, len(body))
    yield Send(head(line, length + fields) + body)


def error(status: int, message: str) -> bytes:
    """An error as the API spells it."""
    facts = {"message": message, "type": "Error", "param": None, "code": status}
    return msgspec.json.encode({"error": facts})


def _refusing(status: int, message: str, fields: bytes = b"") -> Play:
    return lambda script: refusal(status, error(status, message), fields=fields)


for _status, _outcome, _message in (
    (400, "http-invalid", "stream_options: unknown field"),
    (401, "http-auth", "the API key is wrong"),
    (403, "http-auth", "the API key is not for this model"),
    (404, "http-not-found", "the model does not exist"),
    (408, "http-timeout", "the request took too long"),
    (413, "http-too-large", "the prompt is too long"),
    (418, "http-error", "short and stout"),
    (422, "http-invalid", "messages: field required"),
    (500, "http-server-error", "the engine died"),
    (502, "http-server-error", "no healthy upstream"),
    (503, "http-server-error", "overloaded"),
    (504, "http-server-error", "upstream timed out"),
):
    _does = f"Answers {_status} {HTTPStatus(_status).phrase} with a JSON error."
    FAMILY.add(f"http-{_status}", _does, _outcome, _refusing(_status, _message))

FAMILY.add(
    "http-429", "Answers 429 with `Retry-After: 1`.", "http-rate-limited",
    _refusing(429, "too many requests", b"Retry-After: 1\r\n"),
)  # fmt: skip
FAMILY.add(
    "http-429-date", "Answers 429 with a date as Retry-After.", "http-rate-limited",
    _refusing(429, "too many requests", b"Retry-After: Fri, 31 Dec 2100 23:59:59 GMT\r\n"),
)  # fmt: skip


@FAMILY.fault("http-server-error")
def http_500_html(script: Script) -> Steps:
    """Answers 500 with a page of HTML."""
    return refusal(500, HTML, b"text/html")


@FAMILY.fault("http-server-error")
def http_503_empty(script: Script) -> Steps:
    """Answers 503 without a body."""
    return refusal(503, b"", b"text/plain", b"Retry-After: 1\r\n")


for _status in (201, 202, 206):
    _line = b"%d %b" % (_status, HTTPStatus(_status).phrase.encode())
    FAMILY.add(
        f"http-{_status}", f"Answers {_status} {HTTPStatus(_status).phrase}, and well.", "ok",
        lambda script, line=_line: script.well(line),  # type: ignore[misc]
    )  # fmt: skip


@FAMILY.fault("empty")
def http_204(script: Script) -> Steps:
    """Answers 204 No Content."""
    yield Wait(FIRST_NS)
    yield Send(head(b"204 No Content", b""))


def _after(interim: bytes) -> Play:
    """An interim answer 30 ms before the head of a good one."""

    def play(script: Script) -> Steps:
        yield Send(interim)
        yield from script.well()

    return play


FAMILY.add(
    "http-100", "Sends `100 Continue` at once, then answers well.", "ok",
    _after(b"HTTP/1.1 100 Continue\r\n\r\n"),
)  # fmt: skip
FAMILY.add(
    "http-103", "Sends `103 Early Hints` twice at once, then answers well.", "ok",
    _after(b"HTTP/1.1 103 Early Hints\r\nLink: </style.css>; rel=preload\r\n\r\n" * 2),
)  # fmt: skip


# ---- redirects ----


def _redirect(status: int, where: bytes) -> Steps:
    location = b"Location: %b\r\n" % where if where else b""
    return refusal(status, error(status, "it is elsewhere"), fields=location)


def _same_host(script: Script) -> bytes:
    return f"{script.request.path}?{REDIRECTED}".encode("latin-1")


def _once(status: int) -> Play:
    """A redirect to the same host, where the answer is good."""

    def play(script: Script) -> Steps:
        arrived = script.request.query == REDIRECTED
        return script.well() if arrived else _redirect(status, _same_host(script))

    return play


for _status in (307, 308):
    FAMILY.add(
        f"redirect-{_status}",
        f"Redirects by {_status} to the same host, and answers well there.",
        "ok",
        _once(_status),
    )
FAMILY.add(
    "redirect-302",
    "Redirects by 302 to the same host, which turns a POST into a GET.",
    "http-redirect",
    _once(302),
)


@FAMILY.fault("http-redirect")
def redirect_loop(script: Script) -> Steps:
    """Redirects by 307 to the same address, again and again."""
    return _redirect(307, _same_host(script))


@FAMILY.fault("http-redirect")
def redirect_away(script: Script) -> Steps:
    """Redirects by 307 to another host."""
    return _redirect(307, b"http://elsewhere.invalid/v1/chat/completions")


@FAMILY.fault("http-redirect")
def redirect_nowhere(script: Script) -> Steps:
    """Answers 307 without a Location."""
    return _redirect(307, b"")
