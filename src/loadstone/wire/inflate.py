"""Decompresses a body piece by piece, so that every byte of it can still be dated.

One rule: memory is bounded by the limit, whatever was compressed into a few bytes. Answers are asked for
uncompressed; this is for servers and proxies that compress all the same. Knows no HTTP beyond the names of encodings.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import NamedTuple

SLICE_BYTES = 16 << 10
"""What is left of a slice is copied at the end of a gzip member, and members may be tiny."""
MOST_MEMBERS = 100_000

_GZIP = ("gzip", "x-gzip")
_GZIP_WINDOW, _RAW_WINDOW = 31, -15
_GZIP_MAGIC = 0x1F
_DEFLATE_METHOD = 8
_HEADER_CHECK = 31
_HEADER_BYTES = 2


class Inflated(NamedTuple):
    """`pieces[i]` is what piece i brought when decompressed; after a fault the rest are empty."""

    pieces: list[bytes]
    fault: str | None = None
    too_large: bool = False


class _TooLargeError(Exception):
    """There would be more bytes than allowed."""


def inflate(pieces: Sequence[bytes], encoding: str, limit_bytes: int) -> Inflated:
    """The decompressed pieces, `limit_bytes` in all at most. Data that end too early are no fault."""
    if encoding not in (*_GZIP, "deflate"):
        return Inflated([b""] * len(pieces), f"compressed with {encoding}, which we did not ask for")
    body = _Body(encoding in _GZIP, limit_bytes)
    fault, too_large = None, False
    inflated: list[bytes] = []
    try:
        for piece in pieces:
            body.feed(piece)
            inflated.append(body.taken())
    except zlib.error as error:
        fault = f"the body is not the {encoding} that it is said to be: {error}"
    except _TooLargeError:
        fault = f"the body is longer than {limit_bytes} bytes when decompressed (--max-response-bytes)"
        too_large = True
    if fault:
        inflated.append(body.taken())
        inflated += [b""] * (len(pieces) - len(inflated))
    return Inflated(inflated, fault, too_large)


class _Body:
    """One compressed body: gzip members one after the other, or one deflate stream with or without its header."""

    def __init__(self, gzip: bool, limit_bytes: int) -> None:
        self._gzip = gzip
        self._room = limit_bytes
        self._out: list[bytes] = []
        self._member: zlib._Decompress | None = None
        self._members = 0
        self._begin = b""
        self._over = False

    def feed(self, piece: bytes) -> None:
        """Decompresses a piece. Raises `zlib.error` or `_TooLargeError`; what came before can be taken."""
        for start in range(0, len(piece), SLICE_BYTES):
            if self._over:
                return
            self._slice(piece[start : start + SLICE_BYTES])

    def taken(self) -> bytes:
        """What was decompressed since the last time."""
        out = b"".join(self._out)
        self._out.clear()
        return out

    def _slice(self, data: bytes) -> None:
        while data and not self._over:
            if self._member is None:
                data = self._open(data)
            else:
                self._add(self._member.decompress(data, self._room + 1))
                if not self._member.eof:
                    return
                data = self._member.unused_data
                self._member = None

    def _open(self, data: bytes) -> bytes:
        """Begins a member with `data`, or says that none follows; returns what is to be decompressed."""
        if self._members and (not self._gzip or data[0] != _GZIP_MAGIC):
            self._over = True  # padding
            return b""
        self._begin += data
        if not self._gzip and len(self._begin) < _HEADER_BYTES:
            return b""
        data, self._begin = self._begin, b""
        self._members += 1
        if self._members > MOST_MEMBERS:
            raise zlib.error(f"more than {MOST_MEMBERS} members")
        self._member = zlib.decompressobj(_GZIP_WINDOW if self._gzip else _window(data))
        return data

    def _add(self, out: bytes) -> None:
        if len(out) > self._room:
            self._out.append(out[: self._room])
            raise _TooLargeError
        self._room -= len(out)
        self._out.append(out)


def _window(begin: bytes) -> int:
    """How zlib is to read deflate: servers disagree on whether it has the zlib header."""
    has_header = begin[0] & 0x0F == _DEFLATE_METHOD and int.from_bytes(begin[:2], "big") % _HEADER_CHECK == 0
    return zlib.MAX_WBITS if has_header else _RAW_WINDOW
