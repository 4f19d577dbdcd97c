"""What a worker has to do next that no event tells: rows to launch, flights to cancel, phases to begin.

Holds the phases under way, and what flights take of what is limited: slots, places before the first token. Told the
time, never asks for it.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Iterable, Iterator

import msgspec

from loadstone.load.capacity import NEVER_NS, Capacity
from loadstone.load.flight import Flight
from loadstone.load.job import PhaseOrder
from loadstone.load.rows import Dealt, Rows, Shared
from loadstone.load.slots import Launch, Slots
from loadstone.load.stage import Stage
from loadstone.load.targets import Homes
from loadstone.plan.store import REST_NS, Row
from loadstone.recording import WireEnd

Conversation = tuple[int, int]
"""Phase and number."""


class Agenda:
    """One of `workers`. `due_ns` is when to look for what is due; 0: at once, something has changed.

    `rows` opens the rows of a phase; without it they are read from its file as they are.
    """

    def __init__(
        self, worker: int, workers: int, targets: int, rows: Callable[[PhaseOrder], Rows] | None = None
    ) -> None:
        self.stages: dict[int, Stage] = {}
        """Phases under way by number: the last one begins conversations, those before it only end theirs."""
        self.homes = Homes(targets, first=worker)
        self.due_ns = 0
        self._worker = worker
        self._workers = workers
        self._rows = rows or self._file
        self._orders: deque[PhaseOrder] = deque()
        """Phases that follow without a pause."""
        self._places = Capacity()
        self._live: dict[Conversation, bool] = {}
        """Conversations that have begun and are not over, by phase and number, and whether they hold a place."""
        self._prefill = Capacity()
        self._prefilling: set[Flight] = set()
        """Flights that hold a prefill place."""
        self._cancels: list[tuple[int, int, Flight]] = []
        """Flights to be cancelled as planned, by the moment: a heap."""

    # ---- what is due --------------------------------------------------------------------------------

    def next(self, now: int) -> Launch | None:
        """A row to launch now, if there is one; goes on to the phase that follows."""
        for stage in self.stages.values():
            if (launch := stage.slots.next(now)) is not None:
                return launch
        if self._orders and self._may_go_on(now):
            self._begin(self._orders.popleft(), now)
            return self.next(now)
        return None

    def to_cancel(self, now: int) -> Iterator[Flight]:
        """Flights whose planned moment to be cancelled has come; some may have ended."""
        while self._cancels and self._cancels[0][0] <= now:
            yield heapq.heappop(self._cancels)[2]

    def plan_ahead(self, now: int) -> int:
        """Works out `due_ns`: when a row can be launched, a flight is to be cancelled, or a phase may begin."""
        until = self._cancels[0][0] if self._cancels else NEVER_NS
        for stage in self.stages.values():
            if stage.slots.hungry():
                until = now
            until = min(until, stage.slots.next_due_ns())
        if self._orders:
            begin = self._orders[0].start_ns or self._last.slots.stop_ns
            if now < begin < until:
                until = begin
        self.due_ns = until
        return until

    # ---- flights ------------------------------------------------------------------------------------

    def flew(self, flight: Flight) -> None:
        """A row was launched as this flight."""
        row = flight.row
        stage = self.stages[row.phase]
        stage.flying += 1
        self.homes.in_flight[flight.target] += 1
        self._prefilling.add(flight)
        if row.opens:
            self._live[row.phase, row.conversation] = stage.slots.capped

    def sent(self, flight: Flight, sent_ns: int) -> None:
        """A flight that is to be cancelled as planned was sent."""
        order = self.stages[flight.row.phase].order
        heapq.heappush(self._cancels, (sent_ns + order.cancel_after_ns, flight.serial, flight))
        self.due_ns = 0

    def begun(self, flight: Flight, now: int) -> None:
        """A flight that was before its first token is so no more."""
        self._prefilling.remove(flight)
        self._prefill.give(now)
        if self._prefill.limited:
            self.due_ns = 0

    def ended(self, flight: Flight, end: WireEnd, now: int) -> bool:
        """Goes on with the conversation of a flight that has ended, or frees its place; whether it goes on."""
        row = flight.row
        stage = self.stages[row.phase]
        stage.flying -= 1
        stage.ended += 1
        self.homes.in_flight[flight.target] -= 1
        if flight in self._prefilling:
            self.begun(flight, now)
        well = end == WireEnd.COMPLETE and 200 <= flight.status < 300
        goes_on = not row.final and well and stage.slots.follow(row, now)
        if not goes_on:
            unheard = not flight.received and end != WireEnd.COMPLETE
            self._close(row, now, REST_NS if unheard else 0)
        self.due_ns = 0
        return goes_on

    def _close(self, row: Row, now: int, rest_ns: int = 0) -> None:
        """A conversation is over; its place, if it holds one, is free after a rest."""
        if self._live.pop((row.phase, row.conversation), False):
            self._places.give(now, rest_ns)

    def let_go(self, now: int) -> list[Row]:
        """Takes out the rows that will not be sent though they were taken; their conversations are over."""
        gone = []
        for stage in self.stages.values():
            if stage.slots.gone:
                gone += stage.slots.gone
                stage.slots.gone = []
        for row in gone:
            self._close(row, now)
        return gone

    # ---- phases -------------------------------------------------------------------------------------

    def add(self, order: PhaseOrder, now: int) -> None:
        """A phase is to begin: now, or without a pause after those that are under way."""
        if self.stages:
            self._orders.append(order)
        else:
            self._begin(order, now)

    def date(self, number: int, start_ns: int) -> None:
        """A phase that is to follow begins at this moment."""
        for at, order in enumerate(self._orders):
            if order.number == number:
                self._orders[at] = msgspec.structs.replace(order, start_ns=start_ns)
        self.due_ns = 0

    def stop(self) -> list[PhaseOrder]:
        """Leaves out the phases that were to follow, and says which."""
        never = list(self._orders)
        self._orders.clear()
        self.due_ns = 0
        return never

    def over(self) -> Iterable[Stage]:
        """Takes out the phases of which nothing is under way and nothing will be."""
        found = [stage for stage in self.stages.values() if stage.is_over()]
        if self._orders and self._last in found:
            found.remove(self._last)  # the one that follows begins in its place
        for stage in found:
            del self.stages[stage.order.number]
        return found

    def queued(self, now: int) -> int:
        """Rows taken from the plan that are due and have not been launched."""
        return sum(stage.slots.queued(now) for stage in self.stages.values())

    def wanted(self) -> int:
        """The row of the plan that is wanted next."""
        taking = (stage for stage in self.stages.values() if stage.slots.taking)
        return next(taking, self._last).slots.wanted()

    @property
    def _last(self) -> Stage:
        return next(reversed(self.stages.values()))

    def _may_go_on(self, now: int) -> bool:
        """Whether the phase that follows without a pause begins now."""
        order = self._orders[0]
        if order.start_ns is not None:
            return now >= order.start_ns
        return not order.awaits and self._last.slots.spent()

    def _begin(self, order: PhaseOrder, now: int) -> None:
        """Opens the places of a phase. What the phase before has under way still holds some."""
        start_ns = now if order.start_ns is None else order.start_ns
        if order.slots is None or (self.stages and self._last.slots.capped):
            self._places.reset(order.slots, start_ns)
        else:  # what began without a cap holds a place from now on
            self._live = dict.fromkeys(self._live, True)
            taken = sum(stage.slots.opening() for stage in self.stages.values() if stage.slots.capped)
            self._places.reset(order.slots, start_ns, taken=taken + len(self._live))
        self._prefill.reset(order.prefill, start_ns)
        slots = Slots(order, start_ns, self._rows(order), self._places, self._prefill)
        self.stages[order.number] = Stage(order, start_ns, slots)
        self.due_ns = 0

    def _file(self, order: PhaseOrder) -> Rows:
        return Dealt(order, self._worker, self._workers) if order.slots is None else Shared(order)
