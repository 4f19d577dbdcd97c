"""What is measured against what: items with a bar, the table of them, and the file they are kept in."""

from __future__ import annotations

import json
import os
import platform
import statistics
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, NamedTuple

RESULTS = Path(__file__).parent / "results"


class Item(NamedTuple):
    """One figure, measured once or several times; its median is held against the bar."""

    name: str
    unit: str
    values: Sequence[float]
    bar: float | None = None
    """None: shown, not judged."""
    direction: Literal["at most", "at least"] = "at most"
    exact: bool = False
    """A count that no load on the machine can change; judged in the short form too."""

    @property
    def median(self) -> float:
        return statistics.median(self.values)

    @property
    def passed(self) -> bool:
        if self.bar is None:
            return True
        return self.median <= self.bar if self.direction == "at most" else self.median >= self.bar


def merge(repeats: Sequence[Sequence[Item]]) -> list[Item]:
    """The items of several repeats as one list, each with the values of all of them."""
    columns = zip(*repeats, strict=True)
    return [same[0]._replace(values=[value for item in same for value in item.values]) for same in columns]


def figure(value: float) -> str:
    """Three significant figures; whole numbers from a thousand on."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def row(item: Item) -> tuple[str, str, str, str]:
    spread = f" ({figure(min(item.values))} .. {figure(max(item.values))})" if len(item.values) > 1 else ""
    bar = "" if item.bar is None else f"{item.direction} {figure(item.bar)}"
    verdict = "" if item.bar is None else "pass" if item.passed else "MISSED"
    return item.name, f"{figure(item.median)} {item.unit}".rstrip() + spread, bar, verdict


def render(items: Sequence[Item]) -> str:
    """The table as text."""
    rows = [("item", "measured (min .. max)", "bar", ""), *map(row, items)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(r, widths, strict=True)).rstrip() for r in rows
    ]
    return "\n".join([lines[0], "-" * len(lines[0]), *lines[1:]])


def keep(items: Sequence[Item], short: bool) -> Path:
    """Writes the items with their time and machine to `results/<time>.json`."""
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{time.strftime('%Y%m%dT%H%M%S')}.json"
    machine = {"cores": os.cpu_count(), "system": platform.platform(), "python": platform.python_version()}
    facts = [{**item._asdict(), "median": item.median, "passed": item.passed} for item in items]
    path.write_text(json.dumps({"short": short, "machine": machine, "items": facts}, indent=2) + "\n")
    return path
