"""Intervals for means of samples that hang together and are skewed: batch means, with a correction for skewness."""

from __future__ import annotations

import numpy as np

from loadstone.estimate import LEAST, Estimate, too_few
from loadstone.estimate.skewness import reach
from loadstone.estimate.spread import Floats, of_samples

METHOD = "batch means"
SKEW_SHOWN = 1 / 1.5
"""Of the skewness, the share that few batches show, each with few crowds in it: measured on M/M/1 queues (bench coverage)."""


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
    found = of_samples(series)
    down, up = reach(found.t, found.skew / SKEW_SHOWN)
    return Estimate(value - down * found.error, value + up * found.error, METHOD, count / found.inflation)
