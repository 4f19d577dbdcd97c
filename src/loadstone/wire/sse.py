"""Server-sent events, as the WHATWG HTML standard defines them: bytes in, events out.

One rule: however the bytes are cut, the events are the same. Each event says at which byte it was
complete, so that the caller can tell when. Two things go beyond the standard: the data stays bytes, and
an event that the end of the stream left unfinished is given out, marked so (servers forget the last blank line).
Knows neither HTTP nor JSON, and has no clock.
"""

from __future__ import annotations

import re
from typing import NamedTuple

BOM = b"\xef\xbb\xbf"
_LINE_END = re.compile(rb"\r\n?|\n")


class Event(NamedTuple):
    """One event.

    `kind` is the value of its last `event` field ("" when there was none). `end` counts the bytes of the
    stream up to and including the first byte of the line end that completed it. `whole` is False
    when the stream ended without the blank line.
    """

    kind: str
    data: bytes
    end: int
    whole: bool = True


class Parser:
    """An incremental parser of one stream; takes time linear in the bytes, however they are cut."""

    def __init__(self) -> None:
        self._line = bytearray()
        self._data: list[bytes] = []
        self._kind = ""
        self._seen = 0
        self._first_line = True
        self._after_cr = False

    def feed(self, piece: bytes) -> list[Event]:
        """The events that `piece` completes."""
        events: list[Event] = []
        start = 1 if self._after_cr and piece[:1] == b"\n" else 0
        if piece:
            self._after_cr = piece.endswith(b"\r")
        for found in _LINE_END.finditer(piece, start):
            self._line += piece[start : found.start()]
            self._end_of_line(self._seen + found.start() + 1, events)
            start = found.end()
        if start < len(piece):
            self._line += piece[start:]
        self._seen += len(piece)
        return events

    def close(self) -> list[Event]:
        """The unfinished event at the end of the stream, if there is one."""
        events: list[Event] = []
        if self._line:
            self._end_of_line(self._seen, events)
        self._dispatch(self._seen, False, events)
        return events

    def _end_of_line(self, end: int, events: list[Event]) -> None:
        line = bytes(self._line)
        self._line.clear()
        if self._first_line:
            self._first_line = False
            line = line.removeprefix(BOM)
        if line:
            self._field(line)
        else:
            self._dispatch(end, True, events)

    def _field(self, line: bytes) -> None:
        name, _, value = line.partition(b":")
        if name == b"data":
            self._data.append(value.removeprefix(b" "))
        elif name == b"event":
            self._kind = value.removeprefix(b" ").decode("utf-8", "replace")

    def _dispatch(self, end: int, whole: bool, events: list[Event]) -> None:
        if self._data:  # one empty line of data makes an event of empty data
            events.append(Event(self._kind, b"\n".join(self._data), end, whole))
        self._data.clear()
        self._kind = ""
