"""What was asked of a run, as curves to draw beside what it did: the rate, and the slots."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import pairwise

import polars as pl

from loadstone.folder import PhaseLog
from loadstone.plan.rate import Segment
from loadstone.plan.schedule import Phase
from loadstone.plot._runs import Run

POINTS = 40
"""Of an exponential course."""

Point = tuple[float | None, float | None]


def rate(run: Run) -> pl.DataFrame | None:
    """`seconds` and `rate`: the rate over time that the measured phases were to have; None where none was asked for."""
    points: list[Point] = []
    for log, phase in run.measured:
        if phase is not None and phase.curve:
            points += [*_placed(_curve(phase, _stop_s(log)), log, run), (None, None)]
    return _frame(points, "rate")


def slots(run: Run) -> pl.DataFrame | None:
    """`seconds` and `level`: the requests in flight that there were slots for; None without a limit."""
    points: list[Point] = []
    for log, phase in run.measured:
        if phase is not None and phase.slots:
            steps = [(at_ns / 1e9, float(many)) for at_ns, many in phase.slot_steps] or [
                (0.0, float(phase.slots))
            ]
            points += [*_placed(_stairs(steps, _stop_s(log)), log, run), (None, None)]
    return _frame(points, "level")


def _curve(phase: Phase, stop_s: float) -> Iterator[tuple[float, float]]:
    ends = [segment.start_s for segment in phase.curve[1:]] + [math.inf]
    for segment, end_s in zip(phase.curve, ends, strict=True):
        last_s = min(end_s, stop_s)
        if segment.start_s <= last_s:
            yield from _piece(segment, last_s)


def _piece(segment: Segment, stop_s: float) -> Iterator[tuple[float, float]]:
    """The corners of a segment up to `stop_s`, and points between them where it is not a line."""
    whole_s = stop_s - segment.start_s
    moving_s = min(segment.span_s, whole_s)
    parts = POINTS if segment.course == "exponential" and moving_s else 1
    afters_s = [moving_s * part / parts for part in range(parts + 1)]
    for after_s in dict.fromkeys([*afters_s, whole_s]):
        yield segment.start_s + after_s, _rate_at(segment, after_s)


def _rate_at(segment: Segment, after_s: float) -> float:
    if not segment.span_s:
        return segment.rate
    share = min(after_s / segment.span_s, 1.0)
    if segment.course == "exponential":
        return float(segment.rate * (segment.end_rate / segment.rate) ** share)
    return segment.rate + (segment.end_rate - segment.rate) * share


def _stairs(steps: list[tuple[float, float]], stop_s: float) -> Iterator[tuple[float, float]]:
    """The corners of a step function up to `stop_s`."""
    for (at_s, many), (next_s, _) in pairwise([*steps, (math.inf, 0.0)]):
        if at_s <= stop_s:
            yield at_s, many
            yield min(next_s, stop_s), many


def _stop_s(log: PhaseLog) -> float:
    return (log.stop_ns - log.start_ns) / 1e9


def _placed(points: Iterator[tuple[float, float]], log: PhaseLog, run: Run) -> list[Point]:
    """Points of a phase's own time in that of the figure."""
    offset_s = (log.start_ns - run.origin_ns) / 1e9
    return [(seconds + offset_s, value) for seconds, value in points]


def _frame(points: list[Point], name: str) -> pl.DataFrame | None:
    """A frame of points; a pair of nulls breaks the line between phases."""
    if not points:
        return None
    schema = {"seconds": pl.Float64, name: pl.Float64}
    return pl.DataFrame(points[:-1], schema=schema, orient="row")
