"""Puts the rows of ended flights together: whose reads they are, when they arrived, their bytes.

Pure numpy on rows of `read.segments`; the only thing it knows of the bytes is how an END row is packed.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from loadstone.clock import SECOND_NS
from loadstone.read.segments import Rows
from loadstone.read.stamps import Offsets, Times
from loadstone.recording import END, END_FACTS, FIRST_CODE, REDIRECTED, RESENT, START, Facts, WireEnd

UNKNOWN_PHASE = 0xFFFF
"""A START row does not tell the phase; the plan does."""
UNKNOWN_TARGET = 0xFFFF
"""Nor the server it was for."""
LOST = "the worker ended before this request did"


class Flight(NamedTuple):
    """One ended flight. `arrival_ns` and `read_ns` have one entry a read, like `reads`."""

    serial: int
    facts: Facts
    words: str
    end_ns: int
    reads: list[bytes]
    arrival_ns: Times
    read_ns: Times
    kernel_stamps: bool


Data = Mapping[int, mmap.mmap | bytes]


def take_ended(rows: Rows, before_ns: int) -> tuple[Rows, Rows]:
    """Splits rows into those of flights that ended before that moment, and the rest."""
    ends = rows[(rows["code"] == END) & (rows["at_ns"] < before_ns)]
    if not len(ends):
        return rows[:0], rows
    serials = rows["serial"]
    first = serials.min()
    has_ended = np.zeros(int(serials.max() - first) + 1, np.bool_)  # a table: np.isin would sort every time
    has_ended[ends["serial"] - first] = True
    ended = has_ended[serials - first]
    return rows[ended], rows[~ended]


def flights(rows: Rows, offsets: Offsets, data: Data) -> Iterator[Flight]:
    """The flights that `rows` consist of, in order of their serials; an END row is the last of its flight.

    Flights without one were lost with their worker: they end as the client's fault at their last row. Bytes are
    copied flight by flight, as an answer may have hundreds of megabytes.
    """
    rows = rows[np.argsort(rows["serial"], kind="stable")]
    reads = rows[_counted(rows)]
    stamps = reads["a"] * SECOND_NS + reads["b"]
    arrival_ns, known = offsets.arrivals(reads["at_ns"], stamps)
    serials, firsts = np.unique(rows["serial"], return_index=True)
    lasts = np.append(firsts[1:], len(rows)) - 1
    starts = np.searchsorted(reads["serial"], serials)
    stops = np.searchsorted(reads["serial"], serials, side="right")
    pieces = _Pieces(reads, data)
    read_ns = np.ascontiguousarray(reads["at_ns"])
    for serial, first, last, start, stop in zip(
        serials.tolist(), firsts.tolist(), lasts.tolist(), starts.tolist(), stops.tolist(), strict=True
    ):
        noted = _end(rows[last], data) or _lost(rows[first : last + 1])
        if noted is not None:
            yield Flight(
                serial, *noted, int(rows["at_ns"][last]), pieces(start, stop),
                # Stamps mapped with different offsets may differ by a nanosecond the wrong way round.
                np.maximum.accumulate(arrival_ns[start:stop]), read_ns[start:stop], bool(known[start:stop].all()),
            )  # fmt: skip


def _counted(rows: Rows) -> NDArray[np.bool_]:
    """Which rows are reads that count: those of a first try that died unanswered, or of a redirect, do not."""
    counted: NDArray[np.bool_] = rows["code"] < FIRST_CODE
    again = np.flatnonzero((rows["code"] == RESENT) | (rows["code"] == REDIRECTED))
    starts = np.searchsorted(rows["serial"], rows["serial"][again])
    for start, stop in zip(starts.tolist(), again.tolist(), strict=True):
        counted[start:stop] = False
    return counted


class _Pieces:
    """The bytes of stretches of rows."""

    def __init__(self, rows: Rows, data: Data) -> None:
        self._starts: list[int] = rows["at"].tolist()
        self._stops: list[int] = (rows["at"] + rows["code"]).tolist()
        segments = np.unique(rows["segment"])
        self._source = data[int(segments[0])] if len(segments) == 1 else None
        self._segments: list[int] = [] if self._source is not None else rows["segment"].tolist()
        self._data = data

    def __call__(self, start: int, stop: int) -> list[bytes]:
        """Those of the rows from `start` up to `stop`."""
        starts, stops = self._starts[start:stop], self._stops[start:stop]
        if self._source is not None:
            return list(map(self._source.__getitem__, map(slice, starts, stops)))  # no bytecode per read
        places = zip(self._segments[start:stop], starts, stops, strict=True)
        return [self._data[segment][at:end] for segment, at, end in places]


def _end(row: np.void, data: Data) -> tuple[Facts, str] | None:
    """The facts and the worker's words in the bytes of an END row; None for any other row, or a damaged one."""
    start, size = int(row["at"]), int(row["a"])
    if row["code"] != END or size < END_FACTS.size:
        return None
    packed = data[int(row["segment"])][start : start + size]
    words = packed[END_FACTS.size :].decode("utf-8", "replace")
    return Facts._make(END_FACTS.unpack_from(packed)), words


def _lost(rows: Rows) -> tuple[Facts, str] | None:
    """What is known of a flight that never ended; None when not even its start is."""
    starts = rows[rows["code"] == START]
    if not len(starts):
        return None
    start, resent = starts[0], rows[rows["code"] == RESENT]
    facts = Facts(
        request=int(start["a"]),
        due_ns=int(start["b"]),
        sent_ns=int((resent[-1] if len(resent) else start)["at_ns"]),
        written_ns=0,
        connect_ns=0,
        tcp_ns=0,
        connected_ns=0,
        begun_ns=0,
        end=WireEnd.CLIENT,
        status=0,
        retries=len(resent),
        redirects=int(np.count_nonzero(rows["code"] == REDIRECTED)),
        phase=UNKNOWN_PHASE,
        target=UNKNOWN_TARGET,
        body_bytes=0,
    )
    return facts, LOST
