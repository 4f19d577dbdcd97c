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
        self.capped = order.slots is not None
        self.stop_ns = NEVER_NS if order.duration_ns is None else start_ns + order.duration_ns
        """What is due from then on is not sent."""
        self.cut_ns = order.cut_ns(start_ns) or NEVER_NS
        """Nothing at all is sent from then on, and what is under way is cancelled."""
        self.taking = True
        """Further conversations may be taken from the plan."""
        self.starved = 0
        """How often a row was wanted that had not been composed yet."""
        self.gone: list[Row] = []
        """Rows that had been taken and will not be sent; whoever reads them takes them out."""
        self._rows = rows
        self._places = places
        self._prefill = prefill
        self._start_ns = start_ns
        self._drains = order.drain_queue
        self._gated = order.prefill is not None
        """Its rows wait for a prefill place. Those of a phase without such a limit do not, whatever follows it."""
        self._waiting: list[tuple[int, int, Row]] = []
        """Rows that have been taken and whose time has not come, or who wait for a prefill place; by due time: a heap."""
        self._followed: list[tuple[Row, int]] = []
        """Turns that have ended, and when, whose next row the plan has not yet."""
        self._ahead = False
        """Without a cap: a conversation that has not begun is among those that wait."""
        self._starving = False

    # ---- taking and launching -------------------------------------------------------------------------

    def next(self, now: int) -> Launch | None:
        """A row to launch now, if there is one."""
        places, prefill = self._places, self._prefill
        if now >= places.changes_ns:
            places.advance(now)
        if now >= prefill.changes_ns:
            prefill.advance(now)
        if now >= self.stop_ns or places.shut or prefill.shut:
            self._heed_end(now)
        if self._followed:
            self._follow_late()
        if self._gated and not prefill.available:
            return None
        while True:
            if self._waiting and self._waiting[0][0] <= now:
                due, _, row = heapq.heappop(self._waiting)
                return self._launch(row, due, now)
            if not self.taking or not (places.available if self.capped else not self._ahead):
                return None
            row_or_none = self._take(now)
            if row_or_none is None:
                return None
            freed = places.take(now) if self.capped else now
            if row_or_none.due_ns == WHEN_A_SLOT_FREES:
                return self._launch(row_or_none, freed, now)
            self._wait(row_or_none, now)

    def _heed_end(self, now: int) -> None:
        """Ends the taking when its time is over, or when there never will be a place here and the others have taken all.

        What waits for a prefill place then is not sent any more.
        """
        if self.closed(now):
            self.taking = False
            if self._gated or now >= self.cut_ns:
                self._keep([], now)
        elif (self.capped and self._places.shut) or (self._gated and self._prefill.shut):
            self.taking = self.taking and not self._rows.over()

    def _take(self, now: int) -> Row | None:
        """The next conversation; when the time is over, none is waited for that the plan has not yet."""
        row = self._rows.next()
        if row is None:
            self.starved += self._rows.starved and not self._starving
            self._starving = self._rows.starved
            self.taking = self._starving and (self._drains or now < self.stop_ns)
            return None
        self._starving = False
        return row

    def _wait(self, row: Row, now: int) -> None:
        """Lets a conversation that was taken wait for its time; one that is due after the end ends the phase."""
        due = self._start_ns + row.due_ns
        if due >= self.stop_ns:
            self.taking = False
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
        if row.final or self.closed(ended_ns):
            return False
        following = self._rows.after(row)
        if following is None:
            self._followed.append((row, ended_ns))
            return True
        return self._come(following, ended_ns)

    def _follow_late(self) -> None:
        """Goes on with conversations whose next row has come to the plan meanwhile."""
        followed, self._followed = self._followed, []
        self.gone += [row for row, ended_ns in followed if not self.follow(row, ended_ns)]

    def _come(self, row: Row, ended_ns: int) -> bool:
        """Lets a later turn wait for its time; False when that is after the end."""
        due = row.due_ns + (ended_ns if row.follows else self._start_ns)
        if due >= self.stop_ns:
            return False
        heapq.heappush(self._waiting, (due, row.request, row))
        return True

    # ---- when to look again ---------------------------------------------------------------------------

    def next_due_ns(self) -> int:
        """When a row that waits is due, or there may be another place; `NEVER_NS` when only an answer can change that."""
        until = self._prefill.changes_ns if self._gated else NEVER_NS
        if self._prefill.available or not self._gated:
            if self._waiting and self._waiting[0][0] < until:
                until = self._waiting[0][0]
            if self.capped and self.taking and self._places.changes_ns < until:
                until = self._places.changes_ns
        return until

    def hungry(self) -> bool:
        """A conversation could be taken from the plan at once."""
        if not self.taking or self._starving or (self._gated and not self._prefill.available):
            return False
        return self._places.available > 0 if self.capped else not self._ahead

    def wanted(self) -> int:
        """The row of the plan that is wanted next."""
        return self._rows.wanted

    def queued(self, now: int) -> int:
        """Rows that are due and have not been launched."""
        return sum(due <= now for due, _, _ in self._waiting)

    def opening(self) -> int:
        """Conversations that have been taken and have not begun."""
        return sum(row.opens for _, _, row in self._waiting)

    # ---- the end --------------------------------------------------------------------------------------

    def closed(self, now: int) -> bool:
        """Whether the time is over in which anything may be sent: without a limit what was due goes however late."""
        waits = self.capped or self._gated
        return now >= self.cut_ns or (now >= self.stop_ns and waits and not self._drains)

    def stop(self, stop_ns: int, cut_ns: int, now: int) -> None:
        """Nothing that is due from `stop_ns` on is launched any more, and from `cut_ns` on nothing at all."""
        self.cut_ns = min(cut_ns, self.cut_ns)
        self.stop_ns = min(stop_ns, self.stop_ns)
        self._drains = False
        self._keep([entry for entry in self._waiting if entry[0] < stop_ns], now)

    def clear(self, now: int) -> None:
        """Nothing is launched any more at all."""
        self.taking = False
        self._keep([], now)

    def _keep(self, kept: list[tuple[int, int, Row]], now: int) -> None:
        """Lets go of the other rows that wait, and of the places of conversations that have not begun."""
        left = {request for _, request, _ in kept}
        gone = [row for _, request, row in self._waiting if request not in left]
        if any(row.opens for row in gone):
            self.taking = (
                False  # conversations are in the order of their due times: all further ones are later
            )
            for _ in filter(lambda row: row.opens and self.capped, gone):
                self._places.give(now)
        self.gone += [*gone, *(row for row, _ in self._followed)]
        self._followed.clear()
        self._waiting = kept
        heapq.heapify(self._waiting)

    def spent(self) -> bool:
        """No conversation will begin any more; those that have may go on."""
        return not self.taking and not self.opening()

    def exhausted(self) -> bool:
        """No row will be launched any more, unless a request that is under way is followed by another."""
        return not self.taking and not self._waiting and not self._followed
