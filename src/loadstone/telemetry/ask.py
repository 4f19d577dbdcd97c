"""Reads one page once, in bounded time and size, and says why where that cannot be done.

One rule: what a server says of itself is repeated in no reason; only a proxy's refusal and the system's words are, as they
may be shown.
"""

from __future__ import annotations

import time
from typing import NamedTuple

from loadstone.config import hide
from loadstone.load import once, sockets
from loadstone.load.once import Way
from loadstone.telemetry.job import PageJob
from loadstone.terminal import printable
from loadstone.wire.http1 import Response, frame

CONNECT_S = 2.0
ANSWER_S = 5.0
MOST_BYTES = 16 << 20
"""Of a page, unpacked; as much as `load.once` takes."""
FOR_GOOD = frozenset({400, 401, 403, 404, 405, 406, 410, 501})
"""Statuses that say there is no such page, or none for us: a server that has one does not answer so while it starts."""


class Read(NamedTuple):
    """What came of it. Times are CLOCK_MONOTONIC ns."""

    sent_ns: int
    """Just before the request was sent; what the page tells was so at some moment from then on."""
    at_ns: int
    """Its last byte had come, or the attempt was given up."""
    text: str | None = None
    status: int | None = None
    fault: str | None = None
    """Why there is no text."""


def ask(page: PageJob) -> Read:
    """Reads the page on a connection of its own; never raises."""
    sent_ns = time.monotonic_ns()
    try:
        addresses = page.addresses or sockets.resolve(page.host, page.port)
        sock, _ = once.connect(Way(addresses, page.tls, page.tunnel), CONNECT_S)
        with sock:
            sent_ns = time.monotonic_ns()
            exchanged = once.exchange(sock, page.request, ANSWER_S)
    except (OSError, UnicodeError) as error:
        why = printable(hide(str(getattr(error, "strerror", None) or error), page.hidden)).rstrip(".")
        return Read(sent_ns, time.monotonic_ns(), fault=why or type(error).__name__)
    at_ns = time.monotonic_ns()
    answer = frame([exchanged.raw], MOST_BYTES)
    status = answer.status or None
    fault = None
    if status is None:
        fault = (
            "its answer is not HTTP/1.1" if exchanged.raw else "it closed the connection without an answer"
        )
    elif not 200 <= status < 300:
        fault = f"HTTP {status}"
    elif answer.too_large or len(exchanged.raw) >= once.MAX_BYTES:
        fault = f"the page is larger than {MOST_BYTES >> 20} MiB"
    elif answer.compressed and answer.fault:
        fault = "it is compressed, and could not be unpacked"  # the name of the encoding is the server's text
    elif answer.fault or not (answer.complete or _ended_by_close(answer)):
        fault = answer.fault or "the page was cut short"
    if fault is not None:
        return Read(sent_ns, at_ns, status=status, fault=printable(hide(fault, page.hidden)))
    return Read(sent_ns, at_ns, answer.body.decode("utf-8", "replace"), status)


def _ended_by_close(answer: Response) -> bool:
    """Whether a page without a length, which ends where the connection does, came to the end of a line."""
    framed = {"content-length", "transfer-encoding"} & answer.headers.keys()
    return not framed and answer.body.endswith(b"\n")
