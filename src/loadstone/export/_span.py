"""An interval in a few characters: `412 to 431`, open above `>= 390`, withheld `?`."""

from __future__ import annotations

from loadstone.figures import figures
from loadstone.report import Interval

AT_LEAST = ">="
WITHHELD = "?"


def span(interval: Interval | None) -> str:
    """An interval in a cell; empty where the statistic has none."""
    if interval is None:
        return ""
    if interval.low is None:
        return WITHHELD
    if interval.high is None:
        return f"{AT_LEAST} {figures(interval.low)}"
    return f"{figures(interval.low)} to {figures(interval.high)}"
