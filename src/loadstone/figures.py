"""Numbers for people: three significant figures, short enough for a column.

One rule: rounding is for the screen alone; every file holds the number in full.
"""

from __future__ import annotations

import math

UNKNOWN = "-"
LARGE = ((1e12, "T"), (1e9, "G"), (1e6, "M"))


def figures(value: float | None) -> str:
    """`value` to three significant figures: `57.0`, `1,340`, `0.0570`, `12.3M`; `-` when not known.

    Below 0.001 and from 1e15 on in powers of ten (`5.70e-05`).
    """
    if value is None or not math.isfinite(value):
        return UNKNOWN
    rounded = float(f"{value:.2e}")
    size = abs(rounded)
    if size == 0:
        return "0"
    if not 1e-3 <= size < 1e15:
        return f"{rounded:.2e}"
    for scale, suffix in LARGE:
        if size >= scale:
            return _decimals(rounded / scale) + suffix
    return _decimals(rounded)


def brief(value: float) -> str:
    """The same for a sentence, without filling up: `57`, `0.872`, `1,340`."""
    rounded = float(f"{value:.2e}")
    return f"{rounded:,.0f}" if 1e3 <= abs(rounded) < 1e15 else f"{value:.3g}"


def _decimals(value: float) -> str:
    digits = max(2 - math.floor(math.log10(abs(value))), 0)
    return f"{value:,.{digits}f}"


def counted(number: int, noun: str) -> str:
    """A whole number with its noun: `1 request`, `1,200 requests`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
