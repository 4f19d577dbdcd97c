"""How far a number can be trusted: intervals for statistics of samples that depend on each other.

Pure arithmetic on arrays in time order; knows no metric, no unit and no run. Imports numpy only in the modules that need
it, so that the load, which judges a mean while it runs, can do without. docs/statistics.md has the rules and how often
the intervals hold.
"""

from __future__ import annotations

from typing import NamedTuple

LEVEL = 0.95
"""The probability with which an interval is to hold the true value."""
LEAST = 20
"""Fewer samples have no interval: how they hang together cannot be told."""


class Estimate(NamedTuple):
    """An interval, or why there is none; the fields are those of `report.Interval`, in the unit of the samples.

    Without `high` it is open above: the true value is at least `low`, and `reason` says why no more can be told.
    """

    low: float | None
    high: float | None
    method: str
    effective: float | None = None
    reason: str | None = None
    needs: int | None = None


def withheld(method: str, reason: str, needs: int | None = None) -> Estimate:
    """No interval."""
    return Estimate(None, None, method, None, reason, needs)


def too_few(method: str, count: int) -> Estimate:
    """No interval, as there are fewer than `LEAST` samples."""
    there = "is 1 sample" if count == 1 else f"are {count:,} samples"
    return withheld(method, f"there {there}, and an interval takes {LEAST}.", LEAST)
