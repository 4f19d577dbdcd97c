"""The course of phases that follow each other without a pause: their orders, and which one is on."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

from loadstone.clock import SECOND_NS
from loadstone.load.job import PhaseOrder
from loadstone.load.waiting import queue
from loadstone.plan import schedule
from loadstone.plan.schedule import Phase


def chain(first: int, phases: Sequence[Phase], rows_fds: Sequence[int], seed: int) -> list[PhaseOrder]:
    """The orders for phases from number `first` on, with moments that count from the begin of the first.

    Where the moment of the next phase is known beforehand all workers keep it. Else, where its requests have due times,
    main tells them one when it hears that the phase before has nothing more to send; and in a closed loop each worker goes on
    by itself then.
    """
    orders: list[PhaseOrder] = []
    begin: int | None = 0
    for number, phase in enumerate(phases, first):
        if orders:
            begin = _following_ns(phases[number - first - 1], begin, seed)
        orders.append(
            PhaseOrder(
                number=number,
                rows_fd=rows_fds[number],
                first_row=phase.first_row,
                rows=phase.requests,
                start_ns=begin,
                awaits=begin is None and phase.timed,
                duration_ns=phase.duration_ns,
                grace_ns=phase.grace_ns,
                slots=phase.slot_steps or None,
                prefill=phase.prefill_steps or None,
                drain_queue=phase.drain_queue,
                cancel_after_ns=phase.cancel_after_ns,
            )
        )
    return orders


def _following_ns(phase: Phase, begin: int | None, seed: int) -> int | None:
    """When the phase after one that begins at `begin` does; None: when it has nothing more to send."""
    if begin is None:
        return None
    if phase.requests is None and phase.sessions is None:
        return None if phase.duration_ns is None else begin + phase.duration_ns
    last_ns = schedule.last_due_ns(phase, seed)
    if last_ns is None or phase.slots is not None or phase.prefill is not None:
        return None
    spent_ns = last_ns + (round(SECOND_NS / phase.rate) if phase.rate else 0)
    return begin + (spent_ns if phase.duration_ns is None else min(spent_ns, phase.duration_ns))


def dated(orders: Sequence[PhaseOrder], start_ns: int) -> list[PhaseOrder]:
    """The same orders on the clock: the first begins at `start_ns`."""
    return [
        order
        if order.start_ns is None
        else msgspec.structs.replace(order, start_ns=start_ns + order.start_ns)
        for order in orders
    ]


class Course:
    """Which of the phases is on, as far as main has heard."""

    def __init__(self, phases: Sequence[Phase], start_ns: int, plan: Path, seed: int, launched: int) -> None:
        self.at = 0
        """Its position among the phases."""
        self._phases = phases
        self._start_ns = start_ns
        self._plan = plan
        self._seed = seed
        self._launched = launched
        """Requests launched before the phase that is on."""
        self._waiting = queue(phases[0], plan, seed)

    @property
    def phase(self) -> Phase:
        """The phase that is on."""
        return self._phases[self.at]

    def heed(self, number: int, begin_ns: int, launched: int) -> bool:
        """A worker has nothing more to send of a phase; whether that makes the next one begin (at `begin_ns`).

        `launched` requests have been until now.
        """
        if number != self.at or number + 1 == len(self._phases):
            return False
        self.at += 1
        self._start_ns = begin_ns
        self._launched = launched
        self._waiting = queue(self.phase, self._plan, self._seed)
        return True

    def elapsed_s(self) -> float:
        """Since the phase that is on began."""
        return max(0, time.monotonic_ns() - self._start_ns) / 1e9

    def waiting(self, drawn: int, launched: int, held: int) -> int:
        """Requests that are due and have not been sent.

        `drawn` rows of the phase have been read from the plan, `launched` requests have been in all, and workers hold
        `held` that are due.
        In a closed loop none ever waits: a request is due when a place is free.
        """
        elapsed_ns = max(0, time.monotonic_ns() - self._start_ns)
        return self._waiting.look(elapsed_ns, drawn, launched - self._launched, held)
