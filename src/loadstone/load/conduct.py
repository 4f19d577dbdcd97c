"""Conducts the phases of a run on a fleet, one after the other, and notes how each went.

Decides nothing about the load: what is sent and when stands in the plan. Decides only when a phase begins and that
nothing more is sent, when the user interrupts, too much fails, or something the run depends on is gone.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

from loadstone.board import Board, Field, Live
from loadstone.folder import DeathLog, MachineLog, PhaseLog, WorkerLog
from loadstone.interrupt import Interrupt
from loadstone.load.counted import drawn_rows, due_rows
from loadstone.load.course import Course, chain, dated
from loadstone.load.failures import Failures
from loadstone.load.fleet import Fleet
from loadstone.load.job import PhaseDone, PhaseSent, latest
from loadstone.machine import Machine
from loadstone.plan.schedule import DEFAULT_GRACE_S, Phase

NOTICE_NS = 30_000_000
"""Orders are given so long before a phase begins, for every worker to be waiting when it does."""
GIVEN_UP_GRACE_S = 2.0
"""For answers under way when too much has failed, or an objective is missed."""


class Stop(NamedTuple):
    """What ended the load before its time, and why in one sentence."""

    by: Literal["user", "failures", "trouble", "workers", "steady", "slo"]
    why: str


BY_USER = Stop("user", "interrupted")


class Conducted(NamedTuple):
    """How the phases went. `workers` are those of the measured phases, and `busy_share` is of all cores during these."""

    phases: list[PhaseLog]
    workers: list[WorkerLog]
    stop: Stop | None
    starved: int
    busy_share: float | None
    remarks: tuple[str, ...] = ()
    """What a reader has to know of it, one sentence each."""
    machine: MachineLog | None = None


def _nothing(phase: Phase) -> None:
    """Does nothing at the begin or end of a phase."""


class Conduct:
    """A fleet about to be led through its phases.

    `trouble` tells why the load cannot go on, if it cannot; `threshold` is the share of failures at which it should
    not (1: never); `deaths` lists the processes that died; `say` shows the user a line. `begins` is called before a
    phase begins, or, where it follows without a pause, as soon as it is known to have begun; `ended` when every request
    of it has ended. `steady` is shown the live numbers, and tells why they are good enough, if they are; `hopeless`, why
    an objective cannot be met any more. `machine` follows what else happens on this host.
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
        begins: Callable[[Phase], None] = _nothing,
        ended: Callable[[Phase], None] = _nothing,
        steady: Callable[[Phase, Live, float], str | None] = lambda phase, live, elapsed_s: None,
        machine: Machine | None = None,
        hopeless: Callable[[Live], str | None] = lambda live: None,
    ) -> None:
        self._fleet = fleet
        self._board = board
        self._plan = plan
        self._interrupt = interrupt
        self._look_for_trouble = trouble
        self._say = say
        self._threshold = threshold
        self._deaths = deaths
        self._begins = begins
        self._ended = ended
        self._steady = steady
        self._hopeless = hopeless
        self._told: set[int] = set()
        """Deaths that were said, by the moment they were noticed."""
        self._why: Stop | None = None
        self._stop_ns: int | None = None
        self._cut_ns: int | None = None
        self._done: list[dict[int, PhaseDone]] = []
        """What the workers said of every measured phase."""
        self._starved = 0
        self._machine = machine or Machine()

    def lead(
        self, phases: Sequence[Phase], seed: int, tick: Callable[[Phase, float, int], None]
    ) -> Conducted:
        """Runs all phases; `tick(phase, elapsed_s, waiting)` is called about 4 times a second.

        `waiting` are requests that are due and have not been sent. After a stop, and when no worker is left, the phases
        that have not begun are left out.
        """
        logs: list[PhaseLog] = []
        first = 0
        while first < len(phases):
            following = first + 1
            while following < len(phases) and phases[following].seamless:
                following += 1
            if logs and self._interrupt.asked:  # since the last look of the phase before
                self._why = self._why or BY_USER
            if logs and (self._why or not self._fleet.alive):
                break
            logs += self._run(first, phases[first:following], seed, tick)
            first = following
        workers = [self._worker(index) for index in range(self._fleet.workers)]
        seen = self._machine.log()
        measured = {log.name for log in logs if log.kind == "measured"}
        return Conducted(logs, workers, self._why, self._starved, busy_share(seen, measured), machine=seen)

    def _run(
        self, first: int, phases: Sequence[Phase], seed: int, tick: Callable[[Phase, float, int], None]
    ) -> list[PhaseLog]:
        """Runs phases that follow each other without a pause; `first` is the number of the first one."""
        self._begins(phases[0])
        if self._interrupt.asked:  # while that was waited for
            self._why = self._why or BY_USER
            return []
        relative = chain(first, phases, self._fleet.rows_fds, seed)
        before = self._board.live().fields
        slots = max((phase.slots or 0 for phase in phases), default=0) or None
        failures = Failures(self._threshold, slots, before)
        start_ns = time.monotonic_ns() + NOTICE_NS
        orders = dated(relative, start_ns)
        course = Course(phases, start_ns, self._plan, seed, before[Field.DRAWN])
        self._machine.look(course.phase.name)

        def sent(word: PhaseSent) -> None:
            following = orders[word.number - first + 1 :][:1]
            awaits = bool(following) and following[0].awaits
            begin_ns = time.monotonic_ns() + NOTICE_NS if awaits else word.end_ns
            if course.heed(word.number - first, begin_ns, self._board.live().fields[Field.DRAWN]):
                if awaits:
                    self._fleet.begin(word.number + 1, begin_ns)
                self._machine.look(course.phase.name)
                self._begins(course.phase)

        def look() -> None:
            live = self._board.live()
            elapsed_s = max(0, time.monotonic_ns() - start_ns) / 1e9
            self._heed(course.phase, failures.look(live.fields, elapsed_s))
            self._machine.look(course.phase.name)
            if why := self._steady(course.phase, live, course.elapsed_s()):
                self._stop(Stop("steady", why), grace_s(course.phase))
            if why := self._hopeless(live):
                self._stop(Stop("slo", why), min(grace_s(course.phase), GIVEN_UP_GRACE_S))
            drawn = self._fleet.drawn(first + course.at, course.phase.requests)
            waiting = course.waiting(drawn, live.fields[Field.DRAWN], live.fields[Field.QUEUED])
            tick(course.phase, course.elapsed_s(), waiting)

        self._cut_ns = latest(order.cut_ns(order.start_ns) for order in orders)

        def ended(number: int) -> None:
            self._ended(phases[number - first])

        done = self._fleet.run(orders, look, sent, ended)
        self._machine.look(None)
        self._heed_workers()  # the last one may have left between two looks
        self._tell_deaths()
        if not self._fleet.alive and not all(done):
            self._lost(start_ns)
        logs = []
        for number, (phase, order, words) in enumerate(zip(phases, orders, done, strict=True), first):
            begun = {index: word for index, word in words.items() if word.begun}
            if begun or number == first:
                self._note(phase, begun)
                logs.append(self._log(number, phase, seed, order.start_ns or start_ns, begun))
        return logs

    def _note(self, phase: Phase, words: dict[int, PhaseDone]) -> None:
        """Keeps what the workers said of a phase that has ended."""
        self._starved += sum(word.starved for word in words.values())
        if phase.kind == "measured":
            self._done.append(words)

    def _log(
        self, number: int, phase: Phase, seed: int, start_ns: int, words: dict[int, PhaseDone]
    ) -> PhaseLog:
        """How a phase went. Where every worker began it by itself, it began with the first one."""
        start_ns = min((word.start_ns for word in words.values()), default=start_ns)
        end_ns = max((word.end_ns for word in words.values()), default=time.monotonic_ns())
        planned_stop_ns = None if phase.duration_ns is None else start_ns + phase.duration_ns
        stopped_ns = min(t for t in (planned_stop_ns, self._stop_ns, end_ns) if t is not None)
        drawn = 0 if phase.slots is None else self._fleet.drawn(number, phase.requests)
        bounded = planned_stop_ns is not None or self._stop_ns is not None
        return PhaseLog(
            name=phase.name,
            kind=phase.kind,
            seamless=phase.seamless,
            first_row=phase.first_row,
            planned=self._planned(phase, seed, max(0, stopped_ns - start_ns) if bounded else None, drawn),
            start_ns=start_ns,
            stop_ns=max(start_ns, stopped_ns),
            end_ns=max(start_ns, end_ns),
            drawn=drawn,
            dealt=phase.slots is None,
        )

    def _lost(self, start_ns: int) -> None:
        """No worker is left: the load ends here, whatever of it was still to come."""
        now = time.monotonic_ns()
        self._stop_ns = self._stop_ns or now
        after_s = max(0, now - start_ns) / 1e9
        self._why = self._why or Stop("workers", f"every load-generating process died, after {after_s:.1f} s")

    def _planned(self, phase: Phase, seed: int, lasted_ns: int | None, drawn: int) -> int:
        """Rows that count: in a closed loop those drawn, else those due before the stop (None: there was none)."""
        if phase.timed:
            return due_rows(phase, self._plan, seed, lasted_ns)
        return drawn_rows(phase, self._plan, drawn)

    def _heed(self, phase: Phase, failing: str | None) -> None:
        """Stops the load when there is a reason to.

        Answers under way have the grace when the user asks, little of it when too much fails, and none when the
        user asks again or nothing more can be recorded.
        """
        if self._interrupt.asked:
            at_once = self._interrupt.asked > 1
            self._stop(BY_USER, 0.0 if at_once else grace_s(phase))
        self._heed_workers()
        self._tell_deaths()
        if trouble := self._look_for_trouble():
            self._stop(Stop("trouble", trouble), grace_s(phase))
        if failing:
            self._stop(Stop("failures", failing), min(grace_s(phase), GIVEN_UP_GRACE_S))

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
        self._fleet.stop(self._stop_ns, cut_ns, given_up=why.by != "steady")
        reason = "" if why.by == "user" else f" ({why.why})"
        if grace_s:
            self._say(
                f"stopping{reason}: answers under way have {grace_s:g} s to end; once more (Ctrl-C) cancels them"
            )
        else:
            self._say(f"cancelling what is under way{reason}")

    def _worker(self, index: int) -> WorkerLog:
        """One worker over all measured phases."""
        death = self._fleet.deaths.get(index)
        fault = death.fault if death else None
        words = [phase[index] for phase in self._done if index in phase]
        if not words:
            fault = fault or "it said nothing"
        return WorkerLog(
            worker=index,
            cpu_ns=sum(word.cpu_ns for word in words),
            wall_ns=sum(word.wall_ns for word in words),
            flights=sum(word.flights for word in words),
            reads=sum(word.reads for word in words),
            fault=fault,
            waits=sum(word.waits for word in words),
            waited_ns=sum(word.waited_ns for word in words),
            stall_ns=max((word.stall_ns for word in words), default=None),
            stalled_ns=sum(word.stalled_ns for word in words) if words else None,
            write_ns=max((word.write_ns for word in words), default=None),
            collections=max((word.collections for word in words), default=None),
        )


def busy_share(seen: MachineLog, phases: Collection[str]) -> float | None:
    """The busy share of all cores during phases; None where none of them lasted for a moment."""
    spans = [span for span in seen.spans if span.phase in phases]
    cpu_ns = sum(span.cpu_ns for span in spans)
    return sum(span.busy_ns for span in spans) / cpu_ns if cpu_ns else None


def grace_s(phase: Phase) -> float:
    """How long answers under way are awaited when a phase is stopped."""
    return DEFAULT_GRACE_S if phase.grace_ns is None else phase.grace_ns / 1e9
