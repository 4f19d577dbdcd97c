"""Which row goes next, and when: the rows of one phase, as places become free and due times come.

Pure but for the reading of rows: it is told the time and never asks for it. Of the two things that are decided
while a run lasts, this is one; the other is what the server answers.
"""

from __future__ import annotations

import heapq
from typing import NamedTuple

from loadstone.load.capacity import NEVER_NS, Capacity
from loadstone.load.job import PhaseOrder
from loadstone.load.rows import Rows
from loadstone.plan.store import WHEN_A_SLOT_FREES, Row

REST_NS = 100_000_000
"""How long a slot rests after a request that got no answer at all."""


class Launch(NamedTuple):
    """A row to send now, and the moment it was due."""

    row: Row
    due_ns: int


class Slots:
    """One worker's part of one phase.

    With a cap every place of `places` takes the *next* conversation of all workers and keeps it to its last turn, think
    times included. Without, conversations are taken one at a time, as far as the next due time. `prefill` has the
    places of requests before their first token: a row that is due waits for one. Both may be shared with the phase
    before, whose last requests still hold some.
    """

    def __init__(
        self, order: PhaseOrder, start_ns: int, rows: Rows, places: Capacity, prefill: Capacity
    ) -> None:
        self._rows = rows
        self._places = places
        self._prefill = prefill
        self._start_ns = start_ns
        self.capped = order.slots is not None
        self.stop_ns = None if order.duration_ns is None else start_ns + order.duration_ns
        """What is due from then on is not sent; None: there is no such moment."""
        self._gated = order.prefill is not None
        """Its rows wait for a prefill place. Those of a phase without such a limit do not, whatever follows it."""
        self._limited = self.capped or self._gated
        closes = self._limited and not order.drain_queue
        self._closes_ns = self.stop_ns if closes and self.stop_ns is not None else NEVER_NS
        """No conversation begins from then on. Without a limit, what was due before goes however late."""
        cut_ns = order.cut_ns(start_ns)
        self.cut_ns = NEVER_NS if cut_ns is None else cut_ns
        """Nothing at all is sent from then on, and what is under way is cancelled."""
        self._waiting: list[tuple[int, int, Row]] = []
        """Rows that have been taken and whose time has not come, or who wait for a prefill place; by due time: a heap."""
        self._followed: list[tuple[Row, int]] = []
        """Turns that have ended, and when, whose next row the plan has not yet."""
        self._ahead = False
        """Without a cap: a conversation that has not begun is among those that wait."""
        self._drained = False
        self._starving = False
        self.starved = 0
        """How often a row was wanted that had not been composed yet."""

    # ---- taking and launching -------------------------------------------------------------------------

    def next(self, now: int) -> Launch | None:
        """A row to launch now, if there is one."""
        if now >= self._places.changes_ns:
            self._places.advance(now)
        if now >= self._prefill.changes_ns:
            self._prefill.advance(now)
        if now >= self.cut_ns:
            self._drained = True
            return None
        if self._followed:
            self._follow_late(now)
        if self._gated and not self._prefill.available:
            if self.closed(now):
                self.clear(now)
            return None
        while True:
            if self._waiting and self._waiting[0][0] <= now:
                due, _, row = heapq.heappop(self._waiting)
                return self._launch(row, due, now)
            if self._drained or not self._may_take(now):
                return None
            row_or_none = self._take(now)
            if row_or_none is None:
                return None
            freed = self._places.take(now) if self.capped else now
            if row_or_none.due_ns == WHEN_A_SLOT_FREES:
                return self._launch(row_or_none, freed, now)
            self._wait(row_or_none, now)

    def _may_take(self, now: int) -> bool:
        """Whether a conversation may be taken from the plan."""
        places = self._places
        if now >= self._closes_ns or (self.capped and places.shut):
            self._drained = True
            return False
        return places.available > 0 if self.capped else not self._ahead

    def _is_over(self, now: int) -> bool:
        return self.stop_ns is not None and now >= self.stop_ns

    def _take(self, now: int) -> Row | None:
        """The next conversation; when the time is over, none is waited for that the plan has not yet."""
        row = self._rows.next()
        if row is None:
            self.starved += self._rows.starved and not self._starving
            self._starving = self._rows.starved
            self._drained = not self._starving or self._is_over(now)
            return None
        self._starving = False
        return row

    def _wait(self, row: Row, now: int) -> None:
        """Lets a conversation that was taken wait for its time; one that is due after the end ends the phase."""
        due = self._start_ns + row.due_ns
        if self.stop_ns is not None and due >= self.stop_ns:
            self._drained = True
            if self.capped:
                self._places.give(now)
        else:
            heapq.heappush(self._waiting, (due, row.request, row))
            self._ahead = True

    def _launch(self, row: Row, due: int, now: int) -> Launch:
        if row.opens:
            self._ahead = False
        self._prefill.take(now)
        return Launch(row, due)

    # ---- what follows ---------------------------------------------------------------------------------

    def follow(self, row: Row, ended_ns: int) -> bool:
        """Goes on with the conversation of a turn that ended well; False when it is over."""
        if row.final or self.closed(ended_ns) or (self._drained and self._is_over(ended_ns)):
            return False
        following = self._rows.after(row)
        if following is None:
            self._followed.append((row, ended_ns))
            return True
        return self._come(following, ended_ns)

    def _follow_late(self, now: int) -> None:
        """Goes on with conversations whose next row has come to the plan meanwhile; without a cap they end like others."""
        followed, self._followed = self._followed, []
        for row, ended_ns in followed:
            if not self.follow(row, ended_ns) and self.capped:
                self._places.give(now)

    def _come(self, row: Row, ended_ns: int) -> bool:
        """Lets a later turn wait for its time; False when that is after the end."""
        due = row.due_ns + (ended_ns if row.follows else self._start_ns)
        if self.stop_ns is not None and due >= self.stop_ns:
            return False
        heapq.heappush(self._waiting, (due, row.request, row))
        return True

    def over(self, at_ns: int, unheard: bool = False) -> None:
        """A conversation has come to its end, and its place is free.

        After a request of which nothing was heard (`unheard`) the place rests, so that a closed loop on a server that is
        gone does not burn its requests as fast as connections fail.
        """
        self._places.give(at_ns, REST_NS if unheard else 0)

    # ---- when to look again ---------------------------------------------------------------------------

    def next_due_ns(self) -> int:
        """When a row that waits is due, or there may be another place; `NEVER_NS` when only an answer can change that."""
        until = self._prefill.changes_ns if self._gated else NEVER_NS
        if self._prefill.available or not self._gated:
            if self._waiting and self._waiting[0][0] < until:
                until = self._waiting[0][0]
            if self.capped and not self._drained and self._places.changes_ns < until:
                until = self._places.changes_ns
        return until

    def hungry(self) -> bool:
        """A conversation could be taken from the plan at once."""
        if self._drained or self._starving or (self._gated and not self._prefill.available):
            return False
        return self._places.available > 0 if self.capped else not self._ahead

    def closed(self, now: int) -> bool:
        """Whether the time is over in which anything may be sent."""
        return now >= self._closes_ns or now >= self.cut_ns

    def wanted(self) -> int:
        """The row of the plan that is wanted next."""
        return self._rows.wanted

    def queued(self, now: int) -> int:
        """Rows that are due and have not been launched."""
        return sum(due <= now for due, _, _ in self._waiting)

    # ---- the end --------------------------------------------------------------------------------------

    def stop(self, stop_ns: int, cut_ns: int, now: int) -> list[Row]:
        """Nothing that is due from `stop_ns` on is launched any more, and from `cut_ns` on nothing at all.

        The rows that had been taken and are let go.
        """
        self.cut_ns = min(cut_ns, self.cut_ns)
        self.stop_ns = stop_ns if self.stop_ns is None else min(stop_ns, self.stop_ns)
        if self._limited:
            self._closes_ns = min(self._closes_ns, self.stop_ns)
        return self._keep([entry for entry in self._waiting if entry[0] < stop_ns], now)

    def clear(self, now: int) -> list[Row]:
        """Nothing is launched any more at all; the rows that had been taken and are let go."""
        self._drained = True
        return self._keep([], now)

    def _keep(self, kept: list[tuple[int, int, Row]], now: int) -> list[Row]:
        """Lets go of the other rows that wait, and of their places."""
        left = {request for _, request, _ in kept}
        gone = [row for _, request, row in self._waiting if request not in left]
        if any(row.opens for row in gone):
            self._drained = (
                True  # conversations are in the order of their due times: all further ones are later
            )
        gone += [row for row, _ in self._followed]
        if self.capped:
            for _ in gone:
                self._places.give(now)
        self._followed.clear()
        self._waiting = kept
        heapq.heapify(self._waiting)
        return gone

    def spent(self) -> bool:
        """No conversation will begin any more; those that have may go on."""
        return self._drained and not any(row.opens for _, _, row in self._waiting)

    def exhausted(self) -> bool:
        """No row will be launched any more, unless a request that is under way is followed by another."""
        return self._drained and not self._waiting and not self._followed
