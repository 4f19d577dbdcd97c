"""Points of Student's distribution and of the normal one. Pure Python: the load, which judges a mean while it runs, has no numpy."""

from __future__ import annotations

import math
from functools import lru_cache
from statistics import NormalDist

from loadstone.estimate import LEVEL
from loadstone.estimate.beta import below


def normal(level: float = LEVEL) -> float:
    """The z within which, on both sides of 0, a standard normal variable is with the probability `level`."""
    return NormalDist().inv_cdf((1 + level) / 2)


@lru_cache(maxsize=4096)
def t(freedom: float, level: float = LEVEL) -> float:
    """The same of Student's t with `freedom` degrees, which need not be whole: 12.706 for 1, 1.96 for very many.

    Of t the share t^2 / (freedom + t^2) is a Beta(1/2, freedom / 2) variable; its point is found by bisection.
    Raises `ValueError` for less than one degree.
    """
    if freedom < 1:
        raise ValueError("Student's t needs at least one degree of freedom")
    if math.isinf(freedom):
        return normal(level)
    low, high = 0.0, 1.0
    while _within(high, freedom) < level:
        low, high = high, 2 * high
    while high - low > 1e-10 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if _within(middle, freedom) < level else (low, middle)
    return high


def _within(t: float, freedom: float) -> float:
    """The probability of being between -t and t."""
    return 1 - below(freedom / (freedom + t * t), freedom / 2, 0.5)
