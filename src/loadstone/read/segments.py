"""The segments of one worker: read as they grow, deleted when nothing in them is needed any more.

One rule: a row counts when it is whole and its bytes are there; what a crash tore off at the end is left out.
Knows the layout of `loadstone.recording`, and nothing of what the bytes mean.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from loadstone.recording import END, FIRST_CODE, ROW, segment_name, segment_of

ON_DISK = np.dtype([("serial", "<u4"), ("code", "<u4"), ("at_ns", "<i8"), ("a", "<i8"), ("b", "<i8")])
ROWS = np.dtype([*((name, ON_DISK[name]) for name in ON_DISK.names or ()), ("at", "<i8"), ("segment", "<i8")])
"""Rows with the place of their bytes: `at` in the data file of `segment`."""

Rows = NDArray[np.void]
READ_ROWS = 1 << 17
"""Most rows read at once: a server that sends byte by byte fills a segment with millions."""


class Segment:
    """One pair of files, and which flights in it are still needed."""

    def __init__(self, stem: Path) -> None:
        self.idx = stem.with_suffix(".idx")
        self.dat = stem.with_suffix(".dat")
        self.flights: set[int] = set()
        self.closed = False
        self._rows = 0
        self._bytes = 0

    def read(self, number: int) -> Rows:
        """The rows that have come since the last time, `READ_ROWS` at most."""
        with self.idx.open("rb", buffering=0) as file:
            file.seek(self._rows * ROW.size)
            packed = file.read(READ_ROWS * ROW.size)
        raw = np.frombuffer(packed, ON_DISK, len(packed) // ROW.size)
        lengths = np.where(raw["code"] == END, raw["a"], np.where(raw["code"] < FIRST_CODE, raw["code"], 0))
        ends = self._bytes + np.cumsum(lengths)
        whole = int(np.searchsorted(ends, self.dat.stat().st_size, side="right"))
        rows = np.empty(whole, ROWS)
        for name in ON_DISK.names or ():
            rows[name] = raw[name][:whole]
        rows["at"] = (ends - lengths)[:whole]
        rows["segment"] = number
        self._rows += whole
        self._bytes = int(ends[whole - 1]) if whole else self._bytes
        self.flights.update(np.unique(rows["serial"]).tolist())
        self.flights.discard(0)
        return rows

    def delete(self) -> None:
        """Removes the files; rows first, so that no row is ever left without its bytes."""
        self.idx.unlink()
        self.dat.unlink()


class Segments:
    """All segments of one worker that are there."""

    def __init__(self, folder: Path, worker: int, keep: bool) -> None:
        self._folder = folder
        self._worker = worker
        self._keep = keep
        self._there: dict[int, Segment] = {}
        self._reading = -1

    def poll(self) -> tuple[Rows, bool]:
        """New rows of the segment being read, and whether more wait for the next call.

        Which segments exist is asked first: a segment that has a successor does not grow any more.
        """
        found = self._numbers()
        if self._reading not in self._there:
            if not found:
                return np.empty(0, ROWS), False
            self._open(found[0])
        number, segment = self._reading, self._there[self._reading]
        later = [other for other in found if other > number]
        rows = segment.read(number)
        if len(rows) == READ_ROWS:
            return rows, True
        segment.closed = bool(later)
        if later:
            self._open(later[0])
        return rows, bool(later)

    def _numbers(self) -> list[int]:
        names = (segment_of(path.stem) for path in self._folder.glob("w*.idx"))
        mine = (number for worker, number in names if worker == self._worker)
        return sorted(number for number in mine if number >= self._reading)

    def _open(self, number: int) -> None:
        self._reading = number
        self._there[number] = Segment(self._folder / segment_name(self._worker, number))

    def data(self, number: int) -> mmap.mmap | bytes:
        """The bytes of a segment, mapped; give them up soon, they count as memory."""
        with self._there[number].dat.open("rb") as file:
            size = file.seek(0, 2)
            return mmap.mmap(file.fileno(), size, access=mmap.ACCESS_READ) if size else b""

    def overwrite(self, number: int, at: int, size: int) -> None:
        """Stars instead of so many bytes; safe while the worker still adds to the file, since that only grows."""
        with self._there[number].dat.open("r+b") as file:
            file.seek(at)
            file.write(b"*" * size)

    def forget(self, serials: Iterable[int]) -> None:
        """These flights are safe elsewhere: deletes every closed segment that holds no other."""
        done = set(serials)
        for number, segment in list(self._there.items()):
            segment.flights -= done
            if segment.closed and not segment.flights:
                del self._there[number]
                if not self._keep:
                    segment.delete()

    def close(self) -> None:
        """The worker writes no more: the last segment is closed as well."""
        for segment in self._there.values():
            segment.closed = True
        self.forget(())
