"""Which values of a logarithmic axis are labelled: round ones, its end, and what is asked for."""

from __future__ import annotations

from collections.abc import Sequence
from math import floor, log10

APART = 1.15
"""Labels differ by this factor at least."""
ENOUGH = 4
DIGITS = ((1.0, 2.0, 5.0), (1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0), tuple(number / 4 for number in range(4, 40)))
"""Few of them, unless the axis is so short that it has none."""


def labels(low: float, high: float, asked: Sequence[float] = ()) -> list[float]:
    """The values in order; the end and those asked for come before round ones that lie beside them."""
    kept = sorted({high, *(value for value in asked if low <= value <= high)})
    powers = range(floor(log10(low)), floor(log10(high)) + 1)
    found: list[float] = []
    for digits in DIGITS:
        known = (digit * 10.0**power for power in powers for digit in digits)
        found = [value for value in known if low <= value <= high]
        if len(found) >= ENOUGH:
            break
    for value in found:
        if all(max(value, other) >= APART * min(value, other) for other in kept):
            kept.append(value)
    return sorted(kept)
