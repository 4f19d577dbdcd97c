"""How many rows of the plan count for a phase that has ended: those that it was to send while it lasted.

A conversation counts whole, by the row that opens it. Reads the plan, asks no clock.
"""

from __future__ import annotations

from itertools import islice, takewhile
from pathlib import Path

from loadstone.plan import schedule
from loadstone.plan.schedule import ROWS_KEPT_FREE, Phase
from loadstone.plan.store import read_rows


def drawn_rows(phase: Phase, plan: Path, drawn: int) -> int:
    """Of a closed loop: the rows of all conversations that were taken, when workers have read so many rows."""
    rows = _real(plan, phase.first_row, drawn)
    rest = read_rows(plan, phase.first_row + rows, _stop_row(phase))
    return rows + sum(1 for _ in takewhile(lambda row: not row.opens, rest))


def due_rows(phase: Phase, plan: Path, seed: int, lasted_ns: int | None) -> int:
    """Of a phase with due times: the rows that were due before it was stopped (None: it was not).

    Where all due times are drawn they are drawn again, so that those count as well that were not composed in time.
    """
    if lasted_ns is None and phase.requests is not None and not _may_end_before(phase):
        return phase.requests
    if schedule.arrives(phase):
        bounds = [bound for bound in (phase.requests, phase.sessions) if bound is not None]
        due_times = islice(schedule.due_times(phase, seed), min(bounds, default=None))
        return sum(1 for _ in takewhile(lambda due_ns: lasted_ns is None or due_ns < lasted_ns, due_times))
    rows = read_rows(plan, phase.first_row, _stop_row(phase))
    return sum(
        1 for _ in takewhile(lambda row: not row.opens or lasted_ns is None or row.due_ns < lasted_ns, rows)
    )


def _may_end_before(phase: Phase) -> bool:
    """Whether a phase may have fewer rows than its count: of given times, and where the rate ends at 0."""
    return phase.pattern == "fixed" or (bool(phase.curve) and phase.curve[-1].end_rate == 0)


def _stop_row(phase: Phase) -> int:
    """The number of the first row that is certainly none of this phase's."""
    return phase.first_row + (ROWS_KEPT_FREE if phase.requests is None else phase.requests)


def _real(plan: Path, first_row: int, drawn: int) -> int:
    """Of rows that were read, those that are no mark of the phase's end."""
    if not drawn or any(True for _ in read_rows(plan, first_row + drawn - 1, first_row + drawn)):
        return drawn
    return sum(1 for _ in read_rows(plan, first_row, first_row + drawn))
