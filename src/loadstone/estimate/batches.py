"""Intervals for means of samples that hang together and are skewed: batch means, with a correction for skewness.

The mean of a queue's latencies errs unevenly: it is mostly a little too low, and now and then much too high. So the
interval reaches farther up than down: t is bent by Hall's cubic transformation (Hall, 1992; in the form of Willink,
2005, and of N-Skart),

    G(t) = (cbrt(1 + 6 a (t - a)) - 1) / (2 a),    a = skew / 6,

and the interval is mean - G(t) * error .. mean - G(-t) * error.
"""

from __future__ import annotations

import math

import numpy as np

from loadstone.estimate import LEAST, Estimate, too_few
from loadstone.estimate.spread import Floats, Spread, spread

METHOD = "batch means"
SKEW_SHOWN = 1 / 1.5
"""Of the skewness, the share that few batches show, each with few crowds in it: measured on M/M/1 queues (bench coverage)."""
_STRAIGHT = 1e-6
"""A skewness below which the transformation is a straight line."""


def mean(values: Floats) -> Estimate:
    """The interval of the mean of values in time order."""
    return _around(float(np.mean(values)) if len(values) else 0.0, values)


def ratio(numerators: Floats, denominators: Floats) -> Estimate:
    """The interval of sum(numerators) / sum(denominators), of pairs in time order.

    By the error of a ratio of means: the mean of (numerator - ratio * denominator), over that of the denominators.
    """
    weight = float(np.mean(denominators)) if len(denominators) else 0.0
    if not weight > 0:
        return too_few(METHOD, 0)
    value = float(np.mean(numerators)) / weight
    return _around(value, value + (numerators - value * denominators) / weight)


def _around(value: float, series: Floats) -> Estimate:
    """The interval of the mean, which is `value`, of a series."""
    count = len(series)
    if count < LEAST:
        return too_few(METHOD, count)
    found = spread(series)
    down, up = reach(found)
    return Estimate(value - down * found.error, value + up * found.error, METHOD, count / found.inflation)


def reach(found: Spread) -> tuple[float, float]:
    """How many errors an interval reaches down and up."""
    a = found.skew / SKEW_SHOWN / 6
    if abs(a) < _STRAIGHT:
        return found.t, found.t
    return _bent(found.t, a), -_bent(-found.t, a)


def _bent(t: float, a: float) -> float:
    return (math.cbrt(1 + 6 * a * (t - a)) - 1) / (2 * a)
