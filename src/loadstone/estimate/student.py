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

    Of t the share t^2 / (freedom + t^2) is a Beta(1/2, freedom / 2) variable; its point is found by Newton's method from the
    normal one on, which is less: what is within t rises ever more slowly, so that no step goes too far.
    Raises `ValueError` for less than one degree.
    """
    if not freedom >= 1:  # nor a NaN
        raise ValueError("Student's t needs at least one degree of freedom")
    if math.isinf(freedom):
        return normal(level)
    point = normal(level)
    while True:
        step = (level - _within(point, freedom)) / (2 * _density(point, freedom))
        point += step
        if abs(step) <= 1e-10 * point:
            return point


def _density(t: float, freedom: float) -> float:
    at = math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2) - math.log(freedom * math.pi) / 2
    return math.exp(at - (freedom + 1) / 2 * math.log1p(t * t / freedom))


def _within(t: float, freedom: float) -> float:
    """The probability of being between -t and t."""
    return 1 - below(freedom / (freedom + t * t), freedom / 2, 0.5)
