"""The plan of a virtual run: composed as its rows are wanted, so that no row is ever waited for.

Nothing runs beside the clock, so what is not there yet is composed at the moment at which it is asked for, which costs the
run no time of its own.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from loadstone.compose import AHEAD_REQUESTS, BATCH_REQUESTS, ComposeJob, Composition
from loadstone.load.job import PhaseOrder
from loadstone.load.rows import Dealt, Rows, Shared
from loadstone.plan import schedule
from loadstone.plan.store import BODIES, ROW, Row, read_rows, rows_file


class Plan:
    """A plan that grows as it is read."""

    def __init__(self, job: ComposeJob) -> None:
        self.folder = Path(job.folder)
        self.phases = job.phases
        self._composition = Composition(job)
        self._bodies = os.open(self.folder / BODIES, os.O_RDONLY)
        self.rows_fds: Sequence[int] = [
            os.open(self.folder / rows_file(phase.first_row), os.O_RDONLY) for phase in job.phases
        ]

    def close(self) -> None:
        """Closes the files."""
        self._composition.close()
        for descriptor in (*self.rows_fds, self._bodies):
            with suppress(OSError):
                os.close(descriptor)

    def rows(self, order: PhaseOrder) -> Rows:
        """The rows of a phase, for a single client."""
        read = Dealt(order, 0, 1) if order.slots is None else Shared(order)
        return _Growing(read, lambda: self._grow(order.number))

    def body(self, row: Row) -> bytes:
        """The request body of a row."""
        return os.pread(self._bodies, row.body_bytes, row.body_at)

    def drawn(self, number: int) -> int:
        """Rows of a phase with slots that have been read."""
        taken = os.lseek(self.rows_fds[number], 0, os.SEEK_CUR) // ROW.size
        rows = self.phases[number].requests
        return taken if rows is None else min(taken, rows)

    def reach(self, number: int, lasted_ns: int | None) -> None:
        """Composes what of a phase was due within a time and never taken (None: all of it), for it to be counted.

        Where due times are drawn they can be drawn again, so no more than the composer of a real run is composed.
        """
        phase = self.phases[number]
        if not phase.timed or (phase.slots is None and phase.prefill is None):
            return  # all that was due was taken
        position, composed = phase.first_row, 0
        while True:
            due_ns = -1
            for row in read_rows(self.folder, position, self._stop_row(number)):
                position = row.request + 1
                due_ns = row.due_ns if row.opens else due_ns
            reached = lasted_ns is not None and due_ns >= lasted_ns
            enough = schedule.arrives(phase) and composed >= AHEAD_REQUESTS
            if reached or enough or not self._grow(number):
                return
            composed += BATCH_REQUESTS

    def _stop_row(self, number: int) -> int | None:
        return self.phases[number + 1].first_row if number + 1 < len(self.phases) else None

    def _grow(self, number: int) -> bool:
        """Composes a further stretch of a phase; whether it had one."""
        if self._composition.is_whole(number):
            return False
        self._composition.grow(number)
        return True


class _Growing:
    """Rows that are composed when they are wanted; see `loadstone.load.rows.Rows`."""

    starved = False

    def __init__(self, rows: Rows, grow: Callable[[], bool]) -> None:
        self._rows = rows
        self._grow = grow
        self.wanted = rows.wanted

    def next(self) -> Row | None:
        """See `Rows`."""
        row = self._rows.next()
        while row is None and self._rows.starved and self._grow():
            row = self._rows.next()
        self.wanted = self._rows.wanted
        return row

    def after(self, row: Row) -> Row | None:
        """See `Rows`: a conversation is composed whole."""
        return self._rows.after(row)

    def over(self) -> bool:
        """See `Rows`."""
        return self._rows.over()
