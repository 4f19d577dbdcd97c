"""Conducts the phases of a run on a fleet, one after the other, and notes how each went.

Decides nothing about the load: what is sent and when stands in the plan. Decides only when a phase begins and that
nothing more is sent, when the user interrupts, too much fails, or something the run depends on is gone.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

from loadstone import environment
from loadstone.board import Board, Field
from loadstone.folder import DeathLog, PhaseLog, WorkerLog
from loadstone.interrupt import Interrupt
from loadstone.load.failures import Failures
from loadstone.load.fleet import Fleet
from loadstone.load.job import PhaseDone, PhaseOrder
from loadstone.plan.schedule import DEFAULT_GRACE_S, Phase
from loadstone.plan.store import read_rows

NOTICE_NS = 30_000_000
"""Orders are given so long before a phase begins, for every worker to be waiting when it does."""
GIVEN_UP_GRACE_S = 2.0
"""For answers under way when too much has failed."""


class Stop(NamedTuple):
    """What ended the load before its time, and why in one sentence."""

    by: Literal["user", "failures", "trouble", "workers"]
    why: str


BY_USER = Stop("user", "interrupted")


class Conducted(NamedTuple):
    """How the phases went. `workers` are those of the measured phase; `busy_share` is of all cores during it."""

    phases: list[PhaseLog]
    workers: list[WorkerLog]
    stop: Stop | None
    starved: int
    busy_share: float | None


class Conduct:
    """A fleet about to be led through its phases.

    `trouble` tells why the load cannot go on, if it cannot; `threshold` is the share of failures at which it should
    not (1: never); `deaths` lists the processes that died; `say` shows the user a line.
    """

    def __init__(
        self,
        fleet: Fleet,
        board: Board,
        plan: Path,
        interrupt: Interrupt,
        trouble: Callable[[], str | None] = lambda: None,
        say: Callable[[str], None] = lambda line: None,
        threshold: float = 1.0,
        deaths: Callable[[], Sequence[DeathLog]] = tuple,
    ) -> None:
        self._fleet = fleet
        self._board = board
        self._plan = plan
        self._interrupt = interrupt
        self._look_for_trouble = trouble
        self._say = say
        self._threshold = threshold
        self._deaths = deaths
        self._told: set[int] = set()
        """Deaths that were said, by the moment they were noticed."""
        self._why: Stop | None = None
        self._stop_ns: int | None = None
        self._cut_ns: int | None = None

    def lead(self, phases: Sequence[Phase], tick: Callable[[str, float], None]) -> Conducted:
        """Runs all phases; `tick(phase, elapsed_s)` is called about 4 times a second.

        After a stop, and when no worker is left, the phases that have not begun are left out.
        """
        logs: list[PhaseLog] = []
        done: dict[int, PhaseDone] = {}
        starved = 0
        busy_share = None
        first_row = 0
        for number, phase in enumerate(phases):
            if logs and self._interrupt.asked:  # since the last look of the phase before
                self._why = self._why or BY_USER
            if logs and (self._why or not self._fleet.alive):
                break
            busy_before, time_before = environment.cpu_busy_s()
            log, done = self._run(number, phase, first_row, tick)
            busy, total = environment.cpu_busy_s()
            busy_share = (busy - busy_before) / (total - time_before) if total > time_before else None
            logs.append(log)
            starved += sum(word.starved for word in done.values())
            first_row += phase.requests or log.planned
        workers = [self._worker(index, done.get(index)) for index in range(self._fleet.workers)]
        return Conducted(logs, workers, self._why, starved, busy_share)

    def _run(
        self, number: int, phase: Phase, first_row: int, tick: Callable[[str, float], None]
    ) -> tuple[PhaseLog, dict[int, PhaseDone]]:
        before = self._board.live().fields
        failures = Failures(self._threshold, phase.slots, before)
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
            elapsed_s = max(0, time.monotonic_ns() - start_ns) / 1e9
            self._heed(phase, failures.look(self._board.live().fields, elapsed_s))
            tick(phase.name, elapsed_s)

        self._cut_ns = order.cut_ns
        done = self._fleet.run(order, phase.slots, look)
        self._heed_workers()  # the last one may have left between two looks
        self._tell_deaths()
        if not self._fleet.alive and not done:
            self._lost(start_ns)
        end_ns = max((word.end_ns for word in done.values()), default=time.monotonic_ns())
        stopped_ns = max(start_ns, min(t for t in (stop_ns, self._stop_ns, end_ns) if t is not None))
        drawn = self._board.live().fields[Field.DRAWN] - before[Field.DRAWN]
        if phase.slots is not None:  # a worker may be killed between taking a row and counting it
            drawn = max(drawn, self._fleet.drawn(first_row, phase.requests))
        log = PhaseLog(
            name=phase.name,
            first_row=first_row,
            planned=self._planned(phase, first_row, start_ns, stopped_ns, drawn),
            start_ns=start_ns,
            stop_ns=stopped_ns,
            end_ns=max(start_ns, end_ns),
            drawn=drawn,
            dealt=phase.slots is None,
        )
        return log, done

    def _lost(self, start_ns: int) -> None:
        """No worker is left: the load ends here, whatever of it was still to come."""
        now = time.monotonic_ns()
        self._stop_ns = self._stop_ns or now
        after_s = max(0, now - start_ns) / 1e9
        self._why = self._why or Stop("workers", f"every load-generating process died, after {after_s:.1f} s")

    def _planned(self, phase: Phase, first_row: int, start_ns: int, stopped_ns: int, drawn: int) -> int:
        """Rows that count: in a closed loop those drawn, else those due before the stop."""
        if phase.pattern == "closed":
            return drawn
        if phase.duration_ns is None and self._stop_ns is None:
            return phase.requests or 0
        last = None if phase.requests is None else first_row + phase.requests
        rows = read_rows(self._plan, first_row, last)
        return sum(start_ns + row.due_ns < stopped_ns for row in rows)

    def _heed(self, phase: Phase, failing: str | None) -> None:
        """Stops the load when there is a reason to.

        Answers under way have the grace when the user asks, little of it when too much fails, and none when the
        user asks again or nothing more can be recorded.
        """
        grace_s = DEFAULT_GRACE_S if phase.grace_ns is None else phase.grace_ns / 1e9
        if self._interrupt.asked:
            at_once = self._interrupt.asked > 1
            self._stop(BY_USER, 0.0 if at_once else grace_s)
        self._heed_workers()
        self._tell_deaths()
        if trouble := self._look_for_trouble():
            self._stop(Stop("trouble", trouble), grace_s)
        if failing:
            self._stop(Stop("failures", failing), min(grace_s, GIVEN_UP_GRACE_S))

    def _tell_deaths(self) -> None:
        """Says once of every process that died that it did, and what that means for the run."""
        for death in self._deaths():
            if death.noticed_ns not in self._told:
                self._told.add(death.noticed_ns)
                self._say(f"{death.process} died ({death.fault}); the run will be INVALID")

    def _heed_workers(self) -> None:
        if self._fleet.trouble:
            self._stop(Stop("trouble", self._fleet.trouble), 0.0)

    def _stop(self, why: Stop, grace_s: float) -> None:
        """Gives the order, unless what is under way is cancelled sooner anyway. The first reason is the one told."""
        now = time.monotonic_ns()
        cut_ns = now + round(grace_s * 1e9)
        self._why = self._why or why
        if self._cut_ns is not None and cut_ns >= self._cut_ns:
            return
        self._stop_ns = self._stop_ns or now
        self._cut_ns = cut_ns
        self._fleet.stop(self._stop_ns, cut_ns)
        reason = "" if why.by == "user" else f" ({why.why})"
        if grace_s:
            self._say(
                f"stopping{reason}: answers under way have {grace_s:g} s to end; once more (Ctrl-C) cancels them"
            )
        else:
            self._say(f"cancelling what is under way{reason}")

    def _worker(self, index: int, word: PhaseDone | None) -> WorkerLog:
        death = self._fleet.deaths.get(index)
        fault = death.fault if death else None
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
            waits=word.waits,
            waited_ns=word.waited_ns,
        )
