"""Which row goes next, and when: the rows of one phase, as slots become free and due times come.

Pure but for the reading of rows: it is told the time and never asks for it. Of the two things that are decided
while a run lasts, this is one; the other is what the server answers.
"""

from __future__ import annotations

import heapq
from collections import deque
from typing import NamedTuple

from loadstone.load.job import PhaseOrder
from loadstone.load.rows import Dealt, Shared
from loadstone.plan.store import WHEN_A_SLOT_FREES, Row

REST_NS = 100_000_000
"""How long a slot rests after a request that got no answer at all."""


class Launch(NamedTuple):
    """A row to send now, and the moment it was due."""

    row: Row
    due_ns: int


class Slots:
    """One worker's slots in one phase.

    With a cap there are `order.slots` of them, and each free one takes the next row of all workers. Without,
    there is a single one, free again as soon as its row is launched: it only looks ahead to the next due time.
    """

    def __init__(self, order: PhaseOrder, source: Shared | Dealt) -> None:
        self._source = source
        self._start_ns = order.start_ns
        self._stop_ns = order.stop_ns
        self._capped = order.slots is not None
        slots = 1 if order.slots is None else order.slots
        self._freed: deque[int] = deque([order.start_ns] * slots)
        self._resting: deque[int] = deque()
        """When slots that rest may take a row again."""
        self._waiting: list[tuple[int, int, Row]] = []
        """Rows in a slot whose time has not come, by due time: a heap."""
        self._drained = slots == 0
        self._starving = False
        self.starved = 0
        """How often a row was wanted that had not been composed yet."""

    def free(self, at_ns: int, unheard: bool = False) -> None:
        """A launched row has come to its end.

        After one of which nothing was heard (`unheard`) the slot rests, so that a closed loop on a server that is
        gone does not burn its requests as fast as connections fail.
        """
        if self._capped and unheard:
            self._resting.append(at_ns + REST_NS)
        elif self._capped:
            self._freed.append(at_ns)

    def next(self, now: int) -> Launch | None:
        """A row to launch now, if there is one."""
        while self._resting and self._resting[0] <= now:
            self._freed.append(self._resting.popleft())
        while True:
            if self._waiting and self._waiting[0][0] <= now:
                due, _, row = heapq.heappop(self._waiting)
                return self._launched(row, due, now)
            if not self._freed or self._drained:
                return None
            over = self._stop_ns is not None and now >= self._stop_ns
            if over and self._capped:
                self._drained = True  # without a cap a row that was due before goes, however late it is
                return None
            row_or_none = self._source.next()
            if row_or_none is None:
                self.starved += self._source.starved and not self._starving
                self._starving = self._source.starved
                self._drained = over or not self._starving
                return None
            self._starving = False
            freed = self._freed.popleft()
            if row_or_none.due_ns == WHEN_A_SLOT_FREES:
                return self._launched(row_or_none, freed, now)
            self._wait(row_or_none)

    def _wait(self, row: Row) -> None:
        due = self._start_ns + row.due_ns
        if self._stop_ns is not None and due >= self._stop_ns:
            self._drained = True
        else:
            heapq.heappush(self._waiting, (due, row.request, row))

    def _launched(self, row: Row, due: int, now: int) -> Launch:
        if not self._capped:
            self._freed.append(now)
        return Launch(row, due)

    def next_due_ns(self) -> int | None:
        """When the next row in a slot is due, or a slot has rested; None when nothing waits for its time."""
        row = self._waiting[0][0] if self._waiting else None
        if self._resting and not self._drained:
            return self._resting[0] if row is None else min(row, self._resting[0])
        return row

    def closed(self, now: int) -> bool:
        """With a cap, whether the time is over in which requests may be sent; without, what was due goes however late."""
        return self._capped and self._stop_ns is not None and now >= self._stop_ns

    def wanted(self) -> int:
        """The row of the plan that is wanted next."""
        return self._source.wanted

    def hungry(self) -> bool:
        """A slot is free, and a row for it could be had at once."""
        return bool(self._freed) and not self._drained and not self._starving

    def queued(self, now: int) -> int:
        """Rows that are due and have not been launched."""
        return sum(due <= now for due, _, _ in self._waiting)

    def stop(self, stop_ns: int) -> None:
        """Nothing that is due from `stop_ns` on is launched any more."""
        self._stop_ns = stop_ns
        kept = [entry for entry in self._waiting if entry[0] < stop_ns]
        if len(kept) < len(self._waiting):
            self._drained = True  # rows are in the order of their due times: all further ones are later still
        self._waiting = kept
        heapq.heapify(self._waiting)

    def clear(self) -> None:
        """Nothing is launched any more at all."""
        self._drained = True
        self._waiting.clear()

    def exhausted(self) -> bool:
        """No row will ever be launched again."""
        return self._drained and not self._waiting
