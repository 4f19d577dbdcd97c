"""Intervals for shares of things that hang together: Wilson's, with as many trials as independent ones would tell as much."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from loadstone.estimate import LEAST, Estimate, too_few
from loadstone.estimate.skewness import handed_on, reach
from loadstone.estimate.spread import Floats, alone, means, of_batches, spread
from loadstone.estimate.student import normal

METHOD = "Wilson"


def share(hits: NDArray[np.bool_], values: Floats | None = None) -> Estimate:
    """The interval of the probability of a hit, from hits and misses in time order.

    n is divided by how many times the variance of the share is that of independent trials, and z is Student's t
    with what is known of that. Where all are hits, or none, they cannot tell. Then the `values` do that made them
    hits or misses; without such values each counts as a trial of its own.
    """
    count = len(hits)
    if count < LEAST:
        return too_few(METHOD, count)
    hit = int(np.count_nonzero(hits))
    series = hits.astype(np.float64) if hit not in (0, count) else values
    if series is None or (alone(series) and (values is None or alone(values))):
        return Estimate(*wilson(hit / count, count, normal()), METHOD, count)
    found = spread(series)
    effective = count / found.inflation
    down, up = reach(found.t, _skew(hits, values))
    low, high = wilson(hit / count, effective, down)[0], wilson(hit / count, effective, up)[1]
    return Estimate(low, high, METHOD, effective)


def _skew(hits: NDArray[np.bool_], values: Floats | None) -> float:
    """Of the share of hits, as far as it goes up and down with the values that make the hits."""
    if values is None:
        return 0.0
    parts = means(values)
    if hits.all() or not hits.any():
        return of_batches(parts).skew * (-1 if hits.all() else 1)
    return of_batches(parts).skew * handed_on(parts, means(hits.astype(np.float64)))


def wilson(share: float, n: float, z: float) -> tuple[float, float]:
    """Wilson's interval (1927): all p with |share - p| <= z sqrt(p (1 - p) / n)."""
    middle = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    return max(middle - half, 0.0) if share > 0 else 0.0, min(middle + half, 1.0) if share < 1 else 1.0
