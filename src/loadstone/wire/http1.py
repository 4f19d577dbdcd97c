"""Frames one recorded HTTP/1.1 response: the reads as they came in, the message and its dating out.

One rule: nothing is lost on the way from a byte of the body back to the read that brought it. Framing is llhttp's
(`httptools`). Whether the connection ended well is not known here: that is the worker's wire end.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import NamedTuple

from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser

_SWITCHING = 101
_LEAST_STATUS = 100


class Response(NamedTuple):
    """One response. `arrived[i]` is how many bytes of the body read i and those before it had brought."""

    status: int
    """0: no status line was seen."""
    headers: dict[str, str]
    """Names in lower case; of a repeated header the last one."""
    body: bytes
    arrived: list[int]
    complete: bool
    """The message ended as its own framing said."""
    fault: str | None = None
    """Why it is not HTTP/1.1; what came before the fault is kept."""

    @property
    def media_type(self) -> str:
        """The content type without its parameters, in lower case; empty when there was none."""
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()


class _Message:
    """What the parser has found so far."""

    def __init__(self) -> None:
        self.headers: dict[str, str] = {}
        self.pieces: list[bytes] = []
        self.complete = False
        self.on_body = self.pieces.append

    def on_message_begin(self) -> None:
        if self.complete:
            raise HttpParserError("a second message; stops the parser before it forgets the first")

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_message_complete(self) -> None:
        self.complete = True


def frame(reads: Sequence[bytes]) -> Response:
    """The response that `reads`, in their order, make up. Interim responses (1xx) before it are skipped."""
    response = _first(reads)
    interim = 100 <= response.status < 200 and response.status != _SWITCHING
    return _first(_without_interim(reads)) if interim else response


def _first(reads: Sequence[bytes]) -> Response:
    """The first message in `reads`, interim or not."""
    message = _Message()
    parser = HttpResponseParser(message)
    counts: list[int] = []
    fault = _feed(parser, reads, message.pieces, counts)
    counts += [len(message.pieces)] * (len(reads) - len(counts))
    status = parser.get_status_code()  # of "HTTP/1.1 5" it is 5
    lengths = list(accumulate(map(len, message.pieces), initial=0))
    return Response(
        status=status if status >= _LEAST_STATUS else 0,
        headers=message.headers,
        body=b"".join(message.pieces),
        arrived=[lengths[count] for count in counts],
        complete=message.complete,
        fault=None if message.complete else fault,
    )


def _feed(
    parser: HttpResponseParser, reads: Sequence[bytes], pieces: list[bytes], counts: list[int]
) -> str | None:
    """Notes after each read in `counts` how many pieces of the body there were; returns the fault."""
    feed, note = parser.feed_data, counts.append
    try:
        for read in reads:
            feed(read)
            note(len(pieces))
    except HttpParserUpgrade:
        return None  # the status 101 says it
    except HttpParserError as error:
        return f"not HTTP/1.1: {error}"
    return None


def _without_interim(reads: Sequence[bytes]) -> list[bytes]:
    """The same reads with the bytes of leading 1xx responses (a head, no body) taken off."""
    raw = b"".join(reads)
    skip = 0
    while raw.startswith(b"HTTP/1.1 1", skip) and not raw.startswith(b"HTTP/1.1 101", skip):
        end = raw.find(b"\r\n\r\n", skip)
        if end < 0:
            break
        skip = end + 4
    left = []
    for read in reads:
        left.append(read[skip:])
        skip = max(skip - len(read), 0)
    return left
