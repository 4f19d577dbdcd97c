"""Conducts the phases of a run on a fleet, one after the other, and notes how each went.

Decides nothing about the load: what is sent and when stands in the plan. Decides only when a phase begins and,
when the user interrupts, that nothing more is sent.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from loadstone import environment
from loadstone.board import Board, Field
from loadstone.folder import PhaseLog, WorkerLog
from loadstone.interrupt import Interrupt
from loadstone.load.fleet import Fleet
from loadstone.load.job import PhaseDone, PhaseOrder
from loadstone.plan.schedule import DEFAULT_GRACE_S, Phase
from loadstone.plan.store import read_rows

NOTICE_NS = 30_000_000
"""Orders are given so long before a phase begins, for every worker to be waiting when it does."""


class Conducted(NamedTuple):
    """How the phases went. `workers` are those of the measured phase; `busy_share` is of all cores during it.

    `trouble` says why the load was stopped, when it was not the user who did.
    """

    phases: list[PhaseLog]
    workers: list[WorkerLog]
    interrupted: bool
    trouble: str | None
    starved: int
    busy_share: float | None


class Conduct:
    """A fleet about to be led through its phases.

    `trouble` tells why the load cannot go on, if it cannot; `say` shows the user a line.
    """

    def __init__(
        self,
        fleet: Fleet,
        board: Board,
        plan: Path,
        interrupt: Interrupt,
        trouble: Callable[[], str | None] = lambda: None,
        say: Callable[[str], None] = lambda line: None,
    ) -> None:
        self._fleet = fleet
        self._board = board
        self._plan = plan
        self._interrupt = interrupt
        self._look_for_trouble = trouble
        self._say = say
        self._trouble: str | None = None
        self._stop_ns: int | None = None
        self._heeded = 0

    def lead(self, phases: Sequence[Phase], tick: Callable[[str, float], None]) -> Conducted:
        """Runs all phases; `tick(phase, elapsed_s)` is called about 4 times a second.

        After an interrupt the phases that have not begun are left out.
        """
        logs: list[PhaseLog] = []
        done: dict[int, PhaseDone] = {}
        starved = 0
        busy_share = None
        first_row = 0
        for number, phase in enumerate(phases):
            if self._interrupt.asked or self._trouble:
                break
            busy_before, time_before = environment.cpu_busy_s()
            log, done = self._run(number, phase, first_row, tick)
            busy, total = environment.cpu_busy_s()
            busy_share = (busy - busy_before) / (total - time_before) if total > time_before else None
            logs.append(log)
            starved += sum(word.starved for word in done.values())
            first_row += phase.requests or log.planned
        workers = [self._worker(index, done.get(index)) for index in range(self._fleet.workers)]
        return Conducted(logs, workers, self._interrupt.asked > 0, self._trouble, starved, busy_share)

    def _run(
        self, number: int, phase: Phase, first_row: int, tick: Callable[[str, float], None]
    ) -> tuple[PhaseLog, dict[int, PhaseDone]]:
        drawn = self._drawn()
        start_ns = time.monotonic_ns() + NOTICE_NS
        stop_ns = None if phase.duration_ns is None else start_ns + phase.duration_ns
        order = PhaseOrder(
            number=number,
            first_row=first_row,
            rows=phase.requests,
            start_ns=start_ns,
            stop_ns=stop_ns,
            cut_ns=None if stop_ns is None or phase.grace_ns is None else stop_ns + phase.grace_ns,
            slots=None,
        )

        def look() -> None:
            self._heed(phase)
            tick(phase.name, max(0, time.monotonic_ns() - start_ns) / 1e9)

        done = self._fleet.run(order, phase.slots, look)
        end_ns = max((word.end_ns for word in done.values()), default=time.monotonic_ns())
        stopped_ns = min(t for t in (stop_ns, self._stop_ns, end_ns) if t is not None)
        log = PhaseLog(
            name=phase.name,
            first_row=first_row,
            planned=self._planned(phase, first_row, start_ns, stopped_ns, self._drawn() - drawn),
            start_ns=start_ns,
            stop_ns=stopped_ns,
            end_ns=end_ns,
        )
        return log, done

    def _drawn(self) -> int:
        return self._board.live().fields[Field.DRAWN]

    def _planned(self, phase: Phase, first_row: int, start_ns: int, stopped_ns: int, drawn: int) -> int:
        """Rows that count: in a closed loop those drawn, else those due before the stop."""
        if phase.pattern == "closed":
            return drawn
        if phase.duration_ns is None and self._stop_ns is None:
            return phase.requests or 0
        last = None if phase.requests is None else first_row + phase.requests
        rows = read_rows(self._plan, first_row, last)
        return sum(start_ns + row.due_ns < stopped_ns for row in rows)

    def _heed(self, phase: Phase) -> None:
        """Stops the load when the user or trouble asks: answers under way have the grace, at a second Ctrl-C not."""
        if self._trouble is None and (trouble := self._look_for_trouble()):
            self._trouble = trouble
            self._stop(phase, at_once=False)
        if self._interrupt.asked > self._heeded:
            self._heeded = self._interrupt.asked
            self._stop(phase, at_once=self._heeded > 1)

    def _stop(self, phase: Phase, at_once: bool) -> None:
        now = time.monotonic_ns()
        if self._stop_ns is None:
            self._stop_ns = now
        grace_ns = round(DEFAULT_GRACE_S * 1e9) if phase.grace_ns is None else phase.grace_ns
        self._fleet.stop(self._stop_ns, now if at_once else now + grace_ns)
        if at_once:
            self._say("cancelling what is under way")
        else:
            self._say(
                f"stopping: answers under way have {grace_ns / 1e9:g} s to end; once more (Ctrl-C) cancels them"
            )

    def _worker(self, index: int, word: PhaseDone | None) -> WorkerLog:
        fault = self._fleet.faults.get(index)
        if word is None:
            return WorkerLog(
                worker=index, cpu_ns=0, wall_ns=0, flights=0, reads=0, fault=fault or "it said nothing"
            )
        return WorkerLog(
            worker=index,
            cpu_ns=word.cpu_ns,
            wall_ns=word.wall_ns,
            flights=word.flights,
            reads=word.reads,
            fault=fault,
        )
