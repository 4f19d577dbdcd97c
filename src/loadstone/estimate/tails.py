"""How likely so large a deviation is by chance alone, and Holm's correction for many looks."""

from __future__ import annotations

import math
from collections.abc import Sequence

from loadstone.estimate.beta import below

LARGE = 1e7
"""Degrees of freedom from which on Student's t is normal."""


def two_sided(t: float, freedom: float) -> float:
    """The probability of Student's t being farther from 0 than `t`; `freedom` may be a fraction (Welch)."""
    if freedom >= LARGE:
        return math.erfc(abs(t) / math.sqrt(2))
    if math.isinf(t):
        return 0.0
    return below(freedom / (freedom + t * t), freedom / 2, 0.5)


def holm(tails: Sequence[float]) -> list[float]:
    """The same tails, each as it counts beside the others (Holm, 1979): where none differs, one is below 0.05 in at most 5 %.

    The smallest of m is multiplied by m, the next by m - 1, and so on; none comes out below one before it.
    """
    adjusted, most = [0.0] * len(tails), 0.0
    for rank, index in enumerate(sorted(range(len(tails)), key=tails.__getitem__)):
        most = max(most, min((len(tails) - rank) * tails[index], 1.0))
        adjusted[index] = most
    return adjusted
