"""`report.csv`: every metric's numbers, each as one row of a tidy table: metric, unit, stat, value, part.

`part` is empty for the whole measurement; `phase NAME`, `target URL`, `model NAME`, `turn NUMBER`, `length TOKENS` for a
part of the requests, where there are several of them (the warm-up's phase counts as one); `window whole` and `window steady`
for another stretch of time than the measured one, `slice 0-10 s` for a slice of it.

`value` is always a number, so any reader takes the column as one. The stat `count` has the unit
`samples`. A metric that could not be computed has its `count` and one row `mean` with an empty value; the
reason is in `report.json`. `mean_low` and `mean_high`, `p99_low` and `p99_high` and so on are the ends of the 95 % interval of a
statistic; without `_high` it is open above, without both it was withheld. Where requests were cut off, `cut_off` counts them, `censored` those of them that had not come to
the metric's end, `km_p50` and its like are the percentiles with these taken into account (Kaplan-Meier), and a
percentile without a row is at least `km_least`. Where they are lower bounds they are called `km_at_least_p50` and so on. Numbers are written in full, in the shortest form that reads back the
same; what is infinite, since requests failed that count as endless, is `inf`.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from loadstone.export import replacing
from loadstone.report import Group, MetricResult, Report
from loadstone.terminal import escaped

ROLE = "table"
FILE = "report.csv"
HEADER = ("metric", "unit", "stat", "value", "part")
STATS = ("mean", "min", "max", "std", "p1", "p5", "p10", "p25", "p50", "p75", "p90", "p95", "p99", "p99_9")
FORMULA_MARKS = ("=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20")
"""A text cell that begins with one of these is run as a formula by spreadsheets, or by some; the last four are the
full-width forms."""

Line = tuple[str, str, str, str]
"""What stands in all columns but the last."""


def wanted(report: Report) -> bool:
    """Always."""
    return True


def write(report: Report, folder: Path) -> None:
    """Writes `report.csv`."""
    text = io.StringIO(newline="")
    table = csv.writer(text, lineterminator="\n")
    table.writerow(HEADER)
    for part, metrics in parts(report):
        for name, result in metrics.items():
            table.writerows((*line, cell(part)) for line in lines(name, result))
    with replacing(folder / FILE) as file:
        file.write(text.getvalue().encode())


def parts(report: Report) -> Iterator[tuple[str, Mapping[str, MetricResult]]]:
    """All that was measured, then its parts, where there are several of a kind, and other stretches of time."""
    yield "", report.metrics
    several: dict[str, Sequence[Group]] = {
        "phase": report.phases,
        "target": report.targets,
        "model": report.models,
        "turn": report.turns,
        "length": report.lengths,
    }
    for kind, groups in several.items():
        if len(groups) > 1:
            yield from ((f"{kind} {group.name}", group.metrics) for group in groups)
    yield from ((f"window {one.name}", one.metrics) for one in report.windows if one.name != "measured")
    yield from ((f"slice {one.name}", one.metrics) for one in report.timeslices)


def lines(name: str, result: MetricResult) -> Iterator[Line]:
    """The rows of one metric."""
    metric, unit = cell(name), cell(result.unit)
    yield metric, "samples", "count", str(result.count)
    told = ((stat, math.inf if stat in result.infinite else getattr(result, stat)) for stat in STATS)
    known = [(stat, value) for stat, value in told if stat in result.infinite or _finite(value)]
    for stat, value in known or [("mean", None)]:
        yield metric, unit, stat, "" if value is None else repr(value)
    for stat, one in result.intervals.items():
        for end, value in (("low", one.low), ("high", one.high)):
            if _finite(value):
                yield metric, unit, f"{stat}_{end}", repr(value)
    if result.with_censored is not None:
        yield metric, "samples", "cut_off", str(result.cut_off)
        yield metric, "samples", "censored", str(result.censored)
        called = "km_at_least_" if result.with_censored_at_least else "km_"
        curve = {f"{called}{stat}": value for stat, value in result.with_censored.items()}
        for stat, value in {**curve, "km_least": result.with_censored_least}.items():
            if _finite(value):
                yield metric, unit, stat, repr(value)


def _finite(value: float | None) -> bool:
    return value is not None and math.isfinite(value)


def cell(text: str) -> str:
    """`text` for a spreadsheet: on one line, without hidden characters; a leading formula mark is disarmed by an
    apostrophe.
    """
    shown = escaped(text)
    return "'" + shown if shown.startswith(FORMULA_MARKS) else shown
