"""Where a worker's next row comes from: dealt out beforehand, or the next one of all.

Without a cap, worker w of W owns every W-th row. With one, workers share an open file description of the
plan's rows, so that reading a row is an atomic fetch-and-advance of their common position.
"""

from __future__ import annotations

import os
from pathlib import Path

from loadstone.load.job import PhaseOrder
from loadstone.plan.store import ROW, Row


class Shared:
    """The next row of all workers."""

    def __init__(self, fd: int, order: PhaseOrder) -> None:
        self._fd = fd
        self._stop = None if order.rows is None else order.first_row + order.rows
        self.starved = False
        """The last row asked for has not been composed yet."""
        self.wanted = order.first_row
        """Behind the last row taken here."""

    def next(self) -> Row | None:
        """Takes a row; None when the plan has it not yet (`starved`) or the phase has no more."""
        packed = os.read(self._fd, ROW.size)
        self.starved = not packed and not self._past_end()
        if not packed:
            return None
        row = Row._make(ROW.unpack(packed))
        self.wanted = row.request + 1
        return row if self._stop is None or row.request < self._stop else None

    def _past_end(self) -> bool:
        return self._stop is not None and os.lseek(self._fd, 0, os.SEEK_CUR) >= self._stop * ROW.size


class Dealt:
    """Every `workers`-th row, beginning with this worker's."""

    def __init__(self, path: Path, order: PhaseOrder, worker: int, workers: int) -> None:
        self._fd = os.open(path, os.O_RDONLY)
        self.wanted = order.first_row + worker
        """The next row."""
        self._stop = None if order.rows is None else order.first_row + order.rows
        self._step = workers
        self.starved = False
        """The last row asked for has not been composed yet."""

    def next(self) -> Row | None:
        """Takes a row; None when the plan has it not yet (`starved`) or the phase has no more."""
        if self._stop is not None and self.wanted >= self._stop:
            self.starved = False
            return None
        packed = os.pread(self._fd, ROW.size, self.wanted * ROW.size)
        self.starved = len(packed) < ROW.size
        if self.starved:
            return None
        self.wanted += self._step
        return Row._make(ROW.unpack(packed))

    def __del__(self) -> None:
        os.close(self._fd)
