"""Where a worker's next conversation comes from: dealt out beforehand, or the next one of all.

Without a cap, worker w of W owns every W-th conversation. With one, workers share an open file description of the
phase's rows, so that reading a row is an atomic fetch-and-advance of their common position. Either way a conversation is
taken by the row that opens it, and its later rows are read, by whoever took it, when their turn has come.
"""

from __future__ import annotations

import os
import sys
from collections import deque
from typing import Protocol

from loadstone.load.job import PhaseOrder
from loadstone.plan.store import ROW, Row

READ_ROWS = 32
"""Rows that are dealt out are read so many at a time."""


class Rows(Protocol):
    """The rows of one phase, as one worker takes them."""

    starved: bool
    """The last row asked for has not been composed yet."""
    wanted: int
    """Behind the last row read here."""

    def next(self) -> Row | None:
        """Takes a conversation; None when the plan has it not yet (`starved`) or the phase has no more."""

    def after(self, row: Row) -> Row | None:
        """The row behind `row`; None when the plan has it not yet."""

    def over(self) -> bool:
        """Whether there is no further conversation for a worker that takes none itself."""


class _File:
    """The file of a phase's rows, read by position."""

    def __init__(self, order: PhaseOrder) -> None:
        self.starved = False
        self.wanted = order.first_row
        self._fd = order.rows_fd
        self._first = order.first_row
        self._stop = sys.maxsize if order.rows is None else order.first_row + order.rows

    def after(self, row: Row) -> Row | None:
        """See `Rows`."""
        packed = os.pread(self._fd, ROW.size, (row.request + 1 - self._first) * ROW.size)
        return Row._make(ROW.unpack(packed)) if len(packed) == ROW.size else None


class Shared(_File):
    """The next conversation of all workers."""

    def next(self) -> Row | None:
        """See `Rows`."""
        while packed := os.read(self._fd, ROW.size):
            row = Row._make(ROW.unpack(packed))
            self.wanted = row.request + 1
            if not row.body_bytes or row.request >= self._stop:
                self.starved = False
                return None
            if row.opens:
                return row
        self.starved = not self._read_all()
        return None

    def _read_all(self) -> bool:
        return self._position() >= (self._stop - self._first) * ROW.size

    def _position(self) -> int:
        return os.lseek(self._fd, 0, os.SEEK_CUR)

    def over(self) -> bool:
        """See `Rows`: the others have taken all."""
        packed = os.pread(self._fd, ROW.size, self._position())
        return self._read_all() or (len(packed) == ROW.size and Row._make(ROW.unpack(packed)).is_end)


class Dealt(_File):
    """Every `workers`-th conversation, beginning with this worker's."""

    def __init__(self, order: PhaseOrder, worker: int, workers: int) -> None:
        super().__init__(order)
        self._worker = worker
        self._workers = workers
        self._own: deque[Row] = deque()
        self._ended = False

    def next(self) -> Row | None:
        """See `Rows`."""
        while not self._own and not self._ended:
            if not self._read():
                self.starved = True
                return None
        self.starved = False
        return self._own.popleft() if self._own else None

    def over(self) -> bool:
        """See `Rows`: nobody else takes what is dealt to this worker."""
        return True

    def _read(self) -> bool:
        """Reads some further rows and keeps its own; False when there are none yet."""
        if self.wanted == self._stop:
            self._ended = True
            return True
        packed = os.pread(self._fd, READ_ROWS * ROW.size, (self.wanted - self._first) * ROW.size)
        whole = len(packed) - len(packed) % ROW.size
        for values in ROW.iter_unpack(packed[:whole]):
            row = Row._make(values)
            if not row.body_bytes or row.request >= self._stop:
                self._ended = True
                break
            self.wanted = row.request + 1
            if row.opens and row.conversation % self._workers == self._worker:
                self._own.append(row)
        return whole > 0
