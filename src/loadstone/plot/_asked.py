"""What was asked of a run, as curves to draw beside what it did: the rate, and the slots."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from itertools import pairwise, zip_longest

import polars as pl

from loadstone.folder import PhaseLog
from loadstone.plan.rate import Segment
from loadstone.plan.schedule import Phase
from loadstone.plot._runs import Run
from loadstone.summary.ramps import rate_at

POINTS = 40
"""Of an exponential course."""

Point = tuple[float | None, float | None]


def rate(run: Run) -> pl.DataFrame | None:
    """`seconds` and `rate`: the rate that the measured phases were to have, until their last request was due.

    None where none was asked for.
    """
    points: list[Point] = []
    for log, phase in run.measured:
        if phase is not None and phase.curve:
            points += [*_placed(_curve(phase, _last_due_s(log, run)), log, run), (None, None)]
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


def unlike(curves: Iterable[pl.DataFrame]) -> list[pl.DataFrame]:
    """One of each: of curves that are the same, to a tenth of a second and but for their ends, the longest.

    Dashes on dashes would look solid.
    """
    longest: dict[tuple[tuple[float | None, float | None], ...], pl.DataFrame] = {}
    for curve in sorted(curves, key=lambda curve: float(curve["seconds"].drop_nulls().to_numpy().max())):
        seconds = (curve["seconds"] + 0.0).round(1).to_list()[:-1]
        longest[tuple(zip_longest(seconds, curve.to_series(1).to_list()))] = curve
    return list(longest.values())


def together(curves: list[pl.DataFrame]) -> pl.DataFrame:
    """Curves below each other, told apart by `curve`; each phase of one is a curve of its own.

    A line would go on over a pair of nulls, from the end of a phase to the start of the next.
    """
    broken = pl.concat([part for one in curves for part in (one, one.clear(1))])
    return broken.with_columns(curve=pl.col("seconds").is_null().cum_sum()).drop_nulls()


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
        yield segment.start_s + after_s, rate_at(segment, after_s)


def _stairs(steps: list[tuple[float, float]], stop_s: float) -> Iterator[tuple[float, float]]:
    """The corners of a step function up to `stop_s`."""
    for (at_s, many), (next_s, _) in pairwise([*steps, (math.inf, 0.0)]):
        if at_s <= stop_s:
            yield at_s, many
            yield min(next_s, stop_s), many


def _last_due_s(log: PhaseLog, run: Run) -> float:
    """When the last request of a phase was due: what was asked for ends there, though its answers still come."""
    last_ns = run.requests.filter(pl.col("phase").cast(pl.String) == log.name)["due_ns"].max()
    return min((last_ns - log.start_ns) / 1e9, _stop_s(log)) if isinstance(last_ns, int) else 0.0


def _stop_s(log: PhaseLog) -> float:
    return (log.stop_ns - log.start_ns) / 1e9


def _placed(points: Iterator[tuple[float, float]], log: PhaseLog, run: Run) -> list[Point]:
    """Points of a phase's own time in that of the figure."""
    offset_s = (log.start_ns - run.origin_ns) / 1e9
    return [(seconds + offset_s, value) for seconds, value in points]


def _frame(points: list[Point], name: str) -> pl.DataFrame | None:
    """A frame of points; a pair of nulls stands between phases."""
    if not points:
        return None
    schema = {"seconds": pl.Float64, name: pl.Float64}
    return pl.DataFrame(points[:-1], schema=schema, orient="row")
