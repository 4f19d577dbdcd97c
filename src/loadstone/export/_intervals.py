"""The 95 % intervals of the summary: a small table below that of the distributions, and what has to be said of it.

As many columns as the width has room for, in the order of `CHOICE`.
"""

from __future__ import annotations

from collections.abc import Iterator

from rich.cells import cell_len

from loadstone.export._span import AT_LEAST, WITHHELD, span
from loadstone.export._tables import NARROW, SHORT, Metrics, label, rows_shown
from loadstone.report import Interval
from loadstone.terminal import left, printable, right

LENGTHS = ("input_sequence_length", "output_sequence_length")
"""What was asked for, mostly: of no interest here."""
ORDER = ("mean", "p50", "p90", "p95", "p99", "p99_9")
CHOICE = ("p50", "p99", "mean", "p90", "p95", "p99_9")
"""Which statistics come first when there is not room for all."""
TITLE = "95 % intervals"


def intervals(metrics: Metrics, width: int) -> list[str]:
    """The table: a header, and one line a distribution. Without an interval there is no table."""
    names = _rows(metrics)
    if all(one.low is None for name in names for one in metrics[name].intervals.values()):
        return []
    shown = [_cells(metrics, stat) for stat in ORDER if stat in _that_fit(metrics, width)]
    return [
        "  ".join((called, *cells)).rstrip()
        for called, *cells in zip(_called(metrics, width), *shown, strict=True)
    ]


def about_intervals(metrics: Metrics, width: int) -> Iterator[str]:
    """What each mark of the table means, and what would take it away: of the first distribution that has one."""
    shown = [stat for stat in reversed(ORDER) if stat in _that_fit(metrics, width)]
    for mark in (AT_LEAST, WITHHELD):
        marked = [
            (name, stat, one)
            for name in _rows(metrics)
            for stat in shown
            if (one := metrics[name].intervals.get(stat)) and _mark(one) == mark
        ]
        if marked:
            name, stat, one = marked[0]
            yield f"{mark} {label(name)} {stat.replace('_', '.')}: {one.reason}"


def _called(metrics: Metrics, width: int) -> list[str]:
    """The first column: the title, and each name with its unit."""
    names = _rows(metrics)
    called = _column(
        [TITLE, *(SHORT.get(name, label(name)) if width < NARROW else label(name) for name in names)]
    )
    units = _column(["", *(printable(metrics[name].unit) for name in names)])
    return [f"{name} {unit}" for name, unit in zip(called, units, strict=True)]


def _cells(metrics: Metrics, stat: str) -> list[str]:
    spans = [span(metrics[name].intervals.get(stat)) for name in _rows(metrics)]
    return _column([stat.replace("_", "."), *spans], last=True)


def _rows(metrics: Metrics) -> list[str]:
    return [name for name in rows_shown(metrics) if name not in LENGTHS and metrics[name].intervals]


def _mark(one: Interval) -> str:
    if one.low is None:
        return WITHHELD
    return AT_LEAST if one.high is None else ""


def _column(cells: list[str], *, last: bool = False) -> list[str]:
    width = max(map(cell_len, cells))
    return [(right if last else left)(cell, width) for cell in cells]


def _that_fit(metrics: Metrics, width: int) -> set[str]:
    """The longest run of `CHOICE` that has room beside the names, two spaces before each; at least one."""
    room = width - cell_len(_called(metrics, width)[0])
    chosen: set[str] = set()
    for stat in CHOICE:
        room -= cell_len(_cells(metrics, stat)[0]) + 2
        if room < 0 and chosen:
            break
        chosen.add(stat)
    return chosen
