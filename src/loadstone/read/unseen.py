"""What became of planned requests of which nothing was recorded: never sent, or lost with a worker.

Pure: from what the run knew (`folder.RunLog`) and from the turns before it in its conversation alone. A turn after one that
did not succeed was never to be sent. A row that was dealt to a worker that died is lost with it; so is one below the
rows drawn, when rows were shared, since whoever draws a row sends it. What a simulation that was cut off had not stored is
lost, whether it was sent or not. Every other was never sent, and the reason is said where it can be told.
"""

from __future__ import annotations

from typing import NamedTuple

from loadstone.folder import PhaseLog, RunLog
from loadstone.plan.store import WHEN_A_SLOT_FREES, Row
from loadstone.read.outcome import (
    CANCELLED,
    CANCELLED_AS_PLANNED,
    CLIENT_FAULT,
    CUT,
    NOT_SENT,
    SUCCESSES,
    sentence,
)

INTERRUPTED = "the run was interrupted"
NOT_COMPOSED = "the prompt was not composed in time"
NO_WORKERS = "every worker had died"
NO_SLOT = "still waiting for a slot when the time was over"
CUT_OFF = "the run was cut off and nothing of it was recorded"
UNSTORED = "the simulation was cut off before what came of it was stored"
UNKNOWN = "not sent before the run ended"
TURN_FAILED = "an earlier turn of its conversation failed"
TURN_CANCELLED = "an earlier turn of its conversation was cancelled as asked"
NOT_OVER = "its conversation was not over when the load ended"
BROKEN = frozenset({TURN_FAILED, TURN_CANCELLED})
"""Reasons of turns that were not to be sent at all, whatever their due time."""


class Fate(NamedTuple):
    """The outcome of a request that was not seen; `worker` is the one that lost it, where that is known."""

    outcome: str
    fault: str
    worker: int | None = None


class Before(NamedTuple):
    """The last turn of a conversation that was seen before this one: how it ended, and in which worker."""

    outcome: str
    worker: int


class Death(NamedTuple):
    """How a worker ended before its time, and when that was noticed; 0: from the beginning."""

    how: str
    noticed_ns: int


def deaths(log: RunLog) -> dict[int, Death]:
    """The workers that died, by number."""
    told = {death.process: Death(death.fault, death.noticed_ns) for death in log.deaths}
    found = {worker.worker: Death(worker.fault, 0) for worker in log.workers if worker.fault}
    numbers = {f"worker {worker.worker}": worker.worker for worker in log.workers}
    return found | {number: told[name] for name, number in numbers.items() if name in told}


def lost_with(worker: int, how: str) -> str:
    """Why a request is the client's fault whose worker died."""
    return sentence(f"lost with worker {worker}: {how}")


def was_open(log: RunLog, phase: PhaseLog) -> bool:
    """Whether a phase still had something to send when the run was stopped, or cut off.

    The stop ends all such phases at the same moment; of a run that was cut off nobody knows it, and a phase counts as
    open until another one has begun after its last send.
    """
    if log.stopped_by is not None:
        return phase.stop_ns == max(other.stop_ns for other in log.phases)
    later = (other.start_ns for other in log.phases if other.start_ns > phase.start_ns)
    return all(start_ns < phase.stop_ns for start_ns in later)


class Unseen:
    """The unseen requests of one phase. `seen_rows` are the rows from its first up to the last one that was seen."""

    def __init__(self, log: RunLog, phase: PhaseLog, seen_rows: int = 0) -> None:
        later_ns = [other.start_ns for other in log.phases if other.start_ns > phase.start_ns]
        until_ns = max(min(later_ns), phase.end_ns) if later_ns else None
        self._dead = {
            worker: death
            for worker, death in deaths(log).items()
            if until_ns is None or death.noticed_ns < until_ns
        }
        self._workers = max(len(log.workers), 1)
        self._first = phase.first_row
        self._dealt = phase.dealt
        self._drawn = max(phase.drawn, seen_rows)
        self._unstored = log.simulated and log.cut_off
        none_left = 0 < len(log.workers) == len(self._dead)
        self._reason = NO_WORKERS if none_left else _reason(log, phase)

    def fate(self, request: int, row: Row | None, before: Before | None = None) -> Fate:
        """What became of a request. `row` is what the plan holds of it, `before` the last turn seen before it."""
        if row is None or (row.is_end and self._dealt):
            return Fate(NOT_SENT, NOT_COMPOSED)
        if before is not None and (broken := _broken(before.outcome)):
            return Fate(NOT_SENT, broken)
        if self._unstored:
            return Fate(CLIENT_FAULT, UNSTORED)
        if lost := self._lost(request, row, before):
            return lost
        if self._reason is not None:
            return Fate(NOT_SENT, self._reason)
        if row.turn:
            return Fate(NOT_SENT, NOT_OVER)
        timed = row.due_ns != WHEN_A_SLOT_FREES
        return Fate(NOT_SENT, NO_SLOT if timed and not self._dealt else UNKNOWN)

    def _lost(self, request: int, row: Row, before: Before | None) -> Fate | None:
        """What was lost with a worker; None when it was not. A conversation stays with one worker."""
        if not self._dead:
            return None
        if self._dealt or before is not None:
            worker = row.conversation % self._workers if before is None else before.worker
            return self._lost_with(worker) if worker in self._dead else None
        if request - self._first >= self._drawn:
            return None
        return self._lost_with(next(iter(self._dead)) if len(self._dead) == 1 else None)

    def _lost_with(self, worker: int | None) -> Fate:
        if worker is not None:
            return Fate(CLIENT_FAULT, lost_with(worker, self._dead[worker].how), worker)
        died = "; ".join(f"{number}: {death.how}" for number, death in sorted(self._dead.items()))
        return Fate(CLIENT_FAULT, sentence(f"lost with one of the workers that died ({died})"))


def _broken(outcome: str) -> str | None:
    """Why no turn follows one that ended so; None where one would, or where the run's own end broke it off."""
    if outcome == CANCELLED_AS_PLANNED:
        return TURN_CANCELLED
    return None if outcome in SUCCESSES or outcome in (CANCELLED, CUT, NOT_SENT) else TURN_FAILED


def _reason(log: RunLog, phase: PhaseLog) -> str | None:
    """Why a phase sent nothing more, if the run ended before its time and it was still open then."""
    if not was_open(log, phase):
        return None
    if log.stopped_by == "user":
        return INTERRUPTED
    if log.stopped_by is not None:
        return sentence(f"the run was given up: {log.stopped_why or log.stopped_by}".rstrip("."))
    return CUT_OFF if log.end == "aborted" else None
