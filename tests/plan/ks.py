"""The Kolmogorov-Smirnov test of a sample against a distribution, for plans and for runs.

    p = 1 - K((sqrt(n) + 0.12 + 0.11 / sqrt(n)) D), with D the largest distance between the distribution of the sample
    and the other, and K Kolmogorov's distribution.

The correction for finite n is Stephens' (1970); it is right to 0.001 in p from a sample of about 20 on.
"""

from __future__ import annotations

import math


def p_value(sample, cdf, blur=0.0):
    """How likely a sample from the distribution is at least so far from it."""
    root = math.sqrt(len(sample))
    return 1 - kolmogorov((root + 0.12 + 0.11 / root) * distance(sample, cdf, blur))


def distance(sample, cdf, blur=0.0):
    """D: the largest distance between the two, on either side of every step of the sample's distribution.

    Where values are known within `blur` only, the least that it can be.
    """
    ordered, n = sorted(sample), len(sample)
    return max(max((i + 1) / n - cdf(x + blur), cdf(x - blur) - i / n) for i, x in enumerate(ordered))


def kolmogorov(x):
    """K(x), by the one of its two series that converges quickly: sums of ten terms are exact to double precision."""
    if x < 0.05:
        return 0.0
    if x < 1.2:
        terms = (math.exp(-(((2 * k - 1) * math.pi / x) ** 2) / 8) for k in range(1, 11))
        return math.sqrt(2 * math.pi) / x * sum(terms)
    return 1 - 2 * sum((-1) ** (k - 1) * math.exp(-2 * (k * x) ** 2) for k in range(1, 11))


def exponential(mean=1.0):
    """Its distribution function."""
    return lambda x: -math.expm1(-max(x, 0.0) / mean)


def gamma(shape, mean=1.0):
    """Its distribution function: the regularized incomplete gamma function, by its power series."""

    def cdf(x):
        at = x * shape / mean
        if at <= 0:
            return 0.0
        term = total = math.exp(shape * math.log(at) - at - math.lgamma(shape + 1))
        k = shape
        while term > 1e-17 * total:
            k += 1
            term *= at / k
            total += term
        return min(total, 1.0)

    return cdf
