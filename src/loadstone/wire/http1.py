"""Frames one recorded HTTP/1.1 response: the reads as they came in, the message and its dating out.

One rule: nothing is lost on the way from a byte of the body back to the read that brought it; a compressed body is
decompressed read by read. Framing is llhttp's (`httptools`). Whether the connection ended well is not known here:
that is the worker's wire end.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import NamedTuple

from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser

from loadstone.wire.inflate import inflate

LIMIT_BYTES = 64 << 20
"""Of a decompressed body, unless said otherwise."""
MOST_HEAD_BYTES = 64 << 10
"""Of the names and values of all headers and trailers; more than any honest server sends."""

_SWITCHING = 101
_LEAST_STATUS = 100
_BATCH_READS = 64
MOST_PIECES = 4096
"""Of a body in one batch; a chunk may be a single byte, and a piece takes fifty times that beside its byte."""
_ENCODING_CHARS = 40
_HEAD_TOO_LARGE = f"a head or trailer of more than {MOST_HEAD_BYTES} bytes"
_NO_ENCODING_CHAR = re.compile(r"[^A-Za-z0-9 ,.*+-]")


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
    """Why it is not HTTP/1.1, or cannot be decompressed; what came before the fault is kept."""
    compressed: str | None = None
    """The content encoding; `body` and `arrived` are those of the body decompressed. None: identity."""
    too_large: bool = False
    """The fault is that the decompressed body is longer than allowed."""

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
        self.fault: str | None = None
        self.on_body = self.pieces.append
        self._head_bytes = 0
        self._in_head = True

    def on_message_begin(self) -> None:
        if self.complete:
            raise HttpParserError("a second message; stops the parser before it forgets the first")

    def on_header(self, name: bytes, value: bytes) -> None:
        self._head_bytes += len(name) + len(value)
        if self._head_bytes > MOST_HEAD_BYTES:
            self.fault = _HEAD_TOO_LARGE
            raise HttpParserError(_HEAD_TOO_LARGE)
        if self._in_head:
            self.headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        self._in_head = False

    def on_message_complete(self) -> None:
        self.complete = True


def frame(reads: Sequence[bytes], limit_bytes: int = LIMIT_BYTES) -> Response:
    """The response that `reads`, in their order, make up. Interim responses (1xx) before it are skipped.

    A compressed body longer than `limit_bytes` when decompressed is a fault, and its first bytes are kept.
    """
    response = _first(reads, limit_bytes)
    interim = 100 <= response.status < 200 and response.status != _SWITCHING
    return _first(_without_interim(reads), limit_bytes) if interim else response


def _first(reads: Sequence[bytes], limit_bytes: int) -> Response:
    """The first message in `reads`, interim or not."""
    message = _Message()
    parser = HttpResponseParser(message)
    counts: list[int] = []
    fault = _feed(parser, reads, message, counts)
    counts += [len(message.pieces)] * (len(reads) - len(counts))
    status = parser.get_status_code()  # of "HTTP/1.1 5" it is 5
    pieces, too_large = message.pieces, False
    fault = None if message.complete else fault
    compressed = _encoding(message.headers)
    if compressed is not None:
        pieces, inflating, too_large = inflate(pieces, compressed, limit_bytes)
        fault = inflating or fault
    lengths = list(accumulate(map(len, pieces), initial=0))
    return Response(
        status=status if status >= _LEAST_STATUS else 0,
        headers=message.headers,
        body=b"".join(pieces),
        arrived=[lengths[count] for count in counts],
        complete=message.complete,
        fault=fault,
        compressed=compressed,
        too_large=too_large,
    )


def _encoding(headers: dict[str, str]) -> str | None:
    """The content encoding, several of them with commas; None when the body is as it is."""
    told = headers.get("content-encoding")
    if told is None:
        return None
    names = [name.strip() for name in told.lower().split(",")]
    encoding = ", ".join(name for name in names if name not in ("", "identity"))
    return _NO_ENCODING_CHAR.sub("?", encoding[:_ENCODING_CHARS]) or None


def _feed(
    parser: HttpResponseParser, reads: Sequence[bytes], message: _Message, counts: list[int]
) -> str | None:
    """Notes after each read in `counts` how many pieces of the body there were; returns the fault.

    A head that does not end is given up: the parser copies what it has of a header with every further read.
    """
    feed, note, pieces = parser.feed_data, counts.append, message.pieces
    without_body = 0
    try:
        for start in range(0, len(reads), _BATCH_READS):
            before, batch = len(pieces), reads[start : start + _BATCH_READS]
            for read in batch:
                feed(read)
                note(len(pieces))
            without_body = 0 if len(pieces) > before else without_body + sum(map(len, batch))
            if len(pieces) - before > MOST_PIECES:
                _join(pieces, before, counts, start)
            if without_body > MOST_HEAD_BYTES:
                return _HEAD_TOO_LARGE
    except HttpParserUpgrade:
        return None  # the status 101 says it
    except HttpParserError as error:
        return message.fault or f"not HTTP/1.1: {error}"
    return None


def _join(pieces: list[bytes], first: int, counts: list[int], start: int) -> None:
    """Makes one piece a read of those from `first` on, which the reads from `start` on brought."""
    bounds = [first, *counts[start:]]
    pieces[first:] = [b"".join(pieces[begin:end]) for begin, end in pairwise(bounds)]
    counts[start:] = range(first + 1, first + len(bounds))


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
