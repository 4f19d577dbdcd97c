"""How far a number can be trusted: intervals for statistics of samples that depend on each other.

Pure arithmetic on arrays in time order; knows no metric, no unit and no run. Imports numpy only in the modules that need
it, so that the load, which judges a mean while it runs, can do without.
"""

from __future__ import annotations

from typing import NamedTuple

LEVEL = 0.95
"""The probability with which an interval is to hold the true value."""


class Estimate(NamedTuple):
    """An interval, or why there is none; the fields are those of `report.Interval`, in the unit of the samples."""

    low: float | None
    high: float | None
    method: str
    effective: float | None = None
    reason: str | None = None
    needs: int | None = None
