"""Where secrets stand in a recording that is kept: flight by flight, since a read may end within one.

Reads that do not count (of a first try, of a redirect) and the worker's words are looked through as well.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from loadstone.read.flights import Data
from loadstone.read.hidden import Hidden
from loadstone.read.segments import Rows
from loadstone.recording import END, END_FACTS, FIRST_CODE

Place = tuple[int, int, int]
"""Segment, position in its data file, bytes."""


def stained(rows: Rows, data: Data, hidden: Hidden) -> Iterator[Place]:
    """The places to overwrite among the bytes of whole flights."""
    rows = rows[np.argsort(rows["serial"], kind="stable")]
    reads = rows[rows["code"] < FIRST_CODE]
    bounds = np.flatnonzero(np.diff(reads["serial"])) + 1
    for flight in np.split(reads, bounds):
        yield from _stained(list(_places(flight)), data, hidden)
    for segment, at, size in zip(*_columns(rows[rows["code"] == END], "a"), strict=True):
        words = (segment, at + END_FACTS.size, max(size - END_FACTS.size, 0))
        yield from _stained([words], data, hidden)


def _places(reads: Rows) -> Iterator[Place]:
    return zip(*_columns(reads, "code"), strict=True)


def _columns(rows: Rows, size: str) -> tuple[list[int], list[int], list[int]]:
    return rows["segment"].tolist(), rows["at"].tolist(), rows[size].tolist()


def _stained(places: list[Place], data: Data, hidden: Hidden) -> Iterator[Place]:
    """The parts of `places`, one behind the other, that hold secrets."""
    raw = b"".join(data[segment][at : at + size] for segment, at, size in places)
    for start, stop in hidden.spans(raw):
        first = 0
        for segment, at, size in places:
            low, high = max(start - first, 0), min(stop - first, size)
            if low < high:
                yield segment, at + low, high - low
            first += size
