"""Server-sent events, as the WHATWG HTML standard defines them: bytes in, events out.

One rule: however the bytes are cut, the events are the same. Each event says at which byte it was
complete, so that the caller can tell when. Two things go beyond the standard: the data stays bytes, and
an event that the end of the stream left unfinished is given out, marked so (servers forget the last blank line).
Knows neither HTTP nor JSON, and has no clock.
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec

BOM = b"\xef\xbb\xbf"
STRAY_BYTES = 64 << 10
_IGNORED = (b"", b"id", b"retry")
"""Names of fields that mean nothing here; a comment's is empty."""
_JOINED_LINES = 1024
_LINE_ENDS = (b"\n", b"\r")


class Event(msgspec.Struct, frozen=True, gc=False):
    """One event.

    `kind` is the value of its last `event` field ("" when there was none). `end` counts the bytes of the
    stream up to and including the first byte of the line end that completed it. `whole` is False
    when the stream ended without the blank line.
    """

    kind: str
    data: bytes
    end: int
    whole: bool = True


class Stray(NamedTuple):
    """A line that is no field of an event; `end` as that of an event."""

    line: bytes
    end: int


class Parser:
    """An incremental parser of one stream; takes time linear in the bytes, however they are cut.

    `strays` are the first lines that are no field, which the standard ignores, of `STRAY_BYTES` at most: servers
    write their errors there.
    """

    def __init__(self) -> None:
        self.strays: list[Stray] = []
        self._room_bytes = STRAY_BYTES
        self._line = bytearray()
        self._data: list[bytes] = []
        self._kind = ""
        self._seen = 0
        self._first_line = True
        self._after_cr = False

    def feed(self, piece: bytes) -> list[Event]:
        """The events that `piece` completes."""
        if self._after_cr and piece[:1] == b"\n":
            piece = piece[1:]
            self._seen += 1
            self._after_cr = False
        if not piece:
            return []
        events: list[Event] = []
        at = self._seen - len(self._line)
        self._seen += len(piece)
        self._after_cr = piece.endswith(b"\r")
        lines = piece.splitlines(keepends=True)
        unfinished = b"" if piece.endswith(_LINE_ENDS) else lines.pop()
        if lines and self._line:
            self._line += lines[0]
            lines[0] = bytes(self._line)
            self._line.clear()
        if lines and self._first_line:
            at += self._begin(lines)
        data = self._data
        for line in lines:
            text = line.rstrip(b"\r\n")
            if not text:
                self._dispatch(at + 1, True, events)
            elif text.startswith(b"data:"):
                data.append(text[6:] if text.startswith(b" ", 5) else text[5:])
            else:
                self._field(text, at + len(text) + 1)
            at += len(line)
        self._line += unfinished
        return events

    def close(self) -> list[Event]:
        """The unfinished event at the end of the stream, if there is one."""
        events: list[Event] = []
        if self._line:
            lines = [bytes(self._line)]
            self._line.clear()
            if self._first_line:
                self._begin(lines)
            self._field(lines[0], self._seen)
        self._dispatch(self._seen, False, events)
        return events

    def _begin(self, lines: list[bytes]) -> int:
        """Takes the byte order mark off the first line of the stream; how many bytes it has."""
        self._first_line = False
        size = len(lines[0])
        lines[0] = lines[0].removeprefix(BOM)
        return size - len(lines[0])

    def _field(self, line: bytes, end: int) -> None:
        name, _, value = line.partition(b":")
        if name == b"data":
            self._data.append(value.removeprefix(b" "))
        elif name == b"event":
            self._kind = value.removeprefix(b" ").decode("utf-8", "replace")
        elif name not in _IGNORED and self._room_bytes > 0:
            self.strays.append(Stray(line[: self._room_bytes], end))
            self._room_bytes -= len(line)

    def _dispatch(self, end: int, whole: bool, events: list[Event]) -> None:
        data = self._data
        if data:  # one empty line of data makes an event of empty data
            events.append(Event(self._kind, data[0] if len(data) == 1 else _joined(data), end, whole))
            data.clear()
        self._kind = ""


def _joined(lines: list[bytes]) -> bytes:
    """The lines as one. In groups: while it joins, Python takes 80 bytes for every piece, however short."""
    groups = range(0, len(lines), _JOINED_LINES)
    return b"\n".join([b"\n".join(lines[at : at + _JOINED_LINES]) for at in groups])
