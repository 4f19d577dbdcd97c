"""Phases, targets and models beside each other: a small table, a row for each.

Where there is not room for all columns, those that matter least are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rich.cells import cell_len

from loadstone.export._load import USUAL
from loadstone.figures import UNKNOWN, figures
from loadstone.read.outcome import SUCCESSES
from loadstone.report import Group, PhaseFacts, Report
from loadstone.terminal import fit, left, printable, right

GAP = "  "
LEAST_WORDS = 16
"""Cells without which the words of a load are not worth a column."""
NAME_CELLS = 40
"""A longer name is cut."""

Cell = Callable[[Group], str]


def _stat(metric: str, stat: str) -> Cell:
    """A number of one metric, or that it is not known."""

    def cell(group: Group) -> str:
        result = group.metrics.get(metric)
        return UNKNOWN if result is None else figures(getattr(result, stat))

    return cell


def _ok(group: Group) -> str:
    good = sum(group.counts.get(name, 0) for name in SUCCESSES)
    return figures(100 * good / group.planned) if group.planned else UNKNOWN


COLUMNS: dict[str, tuple[str, Cell]] = {
    "planned": ("requests", lambda group: f"{group.planned:,}"),
    "ok": ("ok %", _ok),
    "ttft p50": ("TTFT p50 ms", _stat("time_to_first_token", "p50")),
    "ttft p99": ("p99", _stat("time_to_first_token", "p99")),
    "latency p50": ("latency p50 ms", _stat("request_latency", "p50")),
    "latency p99": ("p99", _stat("request_latency", "p99")),
    "tokens": ("tok/s", _stat("output_token_throughput", "mean")),
}
"""What stands beside a name: its head, and the cell of one row."""
KEPT_LONGEST = ("planned", "latency p50", "ok", "ttft p50", "tokens", "latency p99", "ttft p99")
"""Which columns stay where there is not room for all, the most important first."""


def groups(report: Report, width: int) -> list[str]:
    """A table for the measured phases, one for the targets and one for the models, of those that are several."""
    measured = [phase for phase in report.phases if phase.kind == "measured"]
    several = (
        ("phase", measured),
        ("target", report.targets),
        ("model", report.models),
    )
    tables = [_table(kind, rows, width) for kind, rows in several if len(rows) > 1]
    return [line for number, table in enumerate(tables) for line in ([""] if number else []) + table]


def _table(kind: str, rows: Sequence[Group], width: int) -> list[str]:
    names = [kind, *(fit(printable(row.name), min(NAME_CELLS, width)) for row in rows)]
    columns = {key: [head, *map(cell, rows)] for key, (head, cell) in COLUMNS.items()}
    known = {key: _aligned(cells, right) for key, cells in columns.items() if set(cells[1:]) != {UNKNOWN}}
    first = _aligned(names, left)
    chosen = _that_fit(known, width - cell_len(first[0]))
    lines = [GAP.join(line) for line in zip(first, *chosen, strict=True)]
    return [line.rstrip() for line in _with_words(lines, rows, width)]


def _aligned(cells: list[str], align: Callable[[str, int], str]) -> list[str]:
    widest = max(map(cell_len, cells))
    return [align(cell, widest) for cell in cells]


def _that_fit(columns: dict[str, list[str]], room: int) -> list[list[str]]:
    """The columns that there is room for, in their order."""
    kept = set()
    for key in filter(columns.__contains__, KEPT_LONGEST):
        room -= len(GAP) + cell_len(columns[key][0])
        if room < 0:
            break
        kept.add(key)
    return [cells for key, cells in columns.items() if key in kept]


def _with_words(lines: list[str], rows: Sequence[Group], width: int) -> list[str]:
    """The lines of phases with their loads in words at the end, where there is room: the usual needs none."""
    words = [(row.arrivals or "").replace(USUAL, "") for row in rows if isinstance(row, PhaseFacts)]
    room = width - max(map(cell_len, lines)) - len(GAP)
    if not any(words) or room < LEAST_WORDS:
        return lines
    return [
        f"{line}{GAP}{fit(printable(word), room)}" for line, word in zip(lines, ["load", *words], strict=True)
    ]
