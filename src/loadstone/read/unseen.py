"""What became of planned requests of which nothing was recorded: never sent, or lost with a worker.

Pure: from what the run knew (`folder.RunLog`) alone. A row of the plan that was dealt to a worker that died is lost
with it; so is one below the rows drawn, when rows were shared, since whoever draws a row sends it. Every other was
never sent, and the reason is said where it can be told.
"""

from __future__ import annotations

from typing import NamedTuple

from loadstone.folder import PhaseLog, RunLog
from loadstone.read.outcome import CLIENT_FAULT, NOT_SENT, sentence

INTERRUPTED = "the run was interrupted"
NOT_COMPOSED = "the prompt was not composed in time"
NO_WORKERS = "every worker had died"
NO_SLOT = "still waiting for a slot when the time was over"
CUT_OFF = "the run was cut off and nothing of it was recorded"
UNKNOWN = "not sent before the run ended"


class Fate(NamedTuple):
    """The outcome of a request that was not seen; `worker` is the one that lost it, where that is known."""

    outcome: str
    fault: str
    worker: int | None = None


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


class Unseen:
    """The unseen requests of one phase. `seen_rows` are the rows from its first up to the last one that was seen."""

    def __init__(self, log: RunLog, phase: PhaseLog, seen_rows: int = 0) -> None:
        later_ns = [other.start_ns for other in log.phases if other.start_ns > phase.start_ns]
        until_ns = min(later_ns, default=None)
        self._dead = {
            worker: death
            for worker, death in deaths(log).items()
            if until_ns is None or death.noticed_ns < until_ns
        }
        self._workers = len(log.workers)
        self._first = phase.first_row
        self._dealt = phase.dealt
        self._drawn = max(phase.drawn, seen_rows)
        self._reason = _reason(log, phase, is_last=until_ns is None, none_left=self._none_left())

    def _none_left(self) -> bool:
        return 0 < self._workers == len(self._dead)

    def fate(self, request: int, composed: bool, timed: bool) -> Fate:
        """What became of a request. `composed`: the plan holds it; `timed`: it had a due time of its own."""
        if not composed:
            return Fate(NOT_SENT, NOT_COMPOSED)
        row = request - self._first
        if self._dealt and row % max(self._workers, 1) in self._dead:
            return self._lost(row % self._workers)
        if not self._dealt and row < self._drawn and self._dead:
            return self._lost(next(iter(self._dead)) if len(self._dead) == 1 else None)
        if self._reason is not None:
            return Fate(NOT_SENT, self._reason)
        return Fate(NOT_SENT, NO_SLOT if timed and not self._dealt else UNKNOWN)

    def _lost(self, worker: int | None) -> Fate:
        if worker is not None:
            return Fate(CLIENT_FAULT, lost_with(worker, self._dead[worker].how), worker)
        died = "; ".join(f"{number}: {death.how}" for number, death in sorted(self._dead.items()))
        return Fate(CLIENT_FAULT, sentence(f"lost with one of the workers that died ({died})"))


def _reason(log: RunLog, phase: PhaseLog, is_last: bool, none_left: bool) -> str | None:
    """Why a phase sent nothing more, if it ended before its time. Only the last one can have been stopped."""
    if none_left:
        return NO_WORKERS
    if not is_last:
        return None
    if log.stopped_by == "user":
        return INTERRUPTED
    if log.stopped_by is not None:
        return sentence(f"the run was given up: {log.stopped_why or log.stopped_by}".rstrip("."))
    return CUT_OFF if log.end == "aborted" else None
