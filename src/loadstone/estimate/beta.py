"""The regularised incomplete beta function, from which the distributions of Student and of the binomial follow."""

from __future__ import annotations

import math


def below(x: float, a: float, b: float) -> float:
    """I_x(a, b): the probability that a Beta(a, b) variable is at most `x`.

    By its continued fraction (DLMF 8.17.22); from the other side where that ends sooner.
    """
    if x <= 0:
        return 0.0
    if x >= 1:
        return 1.0
    if x > (a + 1) / (a + b + 2):
        return 1 - below(1 - x, b, a)
    scale = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    return math.exp(scale) / a * _fraction(x, a, b)


def binomial_below(hits: int, n: int, p: float) -> float:
    """The probability that fewer than `hits` of `n` independent trials succeed, each with probability `p`."""
    if hits <= 0:
        return 0.0
    return 1.0 if hits > n else below(1 - p, n - hits + 1, hits)


def _fraction(x: float, a: float, b: float) -> float:
    """1 / (1 + d1 / (1 + d2 / ...)), from its far end, with twice as many terms until that changes nothing."""
    pairs, before = 8, math.nan
    while True:
        value = 1.0
        for m in range(pairs, -1, -1):
            odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
            even = (m + 1) * (b - m - 1) * x / ((a + 2 * m + 1) * (a + 2 * m + 2))
            value = 1 + odd / (1 + even / value)
        if math.isclose(value, before, rel_tol=1e-14):
            return 1 / value
        pairs, before = 2 * pairs, value
