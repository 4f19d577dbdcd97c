"""Intervals for shares of things that hang together: Wilson's, with as many trials as independent ones would tell as much."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from loadstone.estimate import LEAST, Estimate, too_few
from loadstone.estimate.spread import Floats, spread
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
    if hit not in (0, count):
        found = spread(hits.astype(np.float64))
    elif values is not None:
        found = spread(values)
    else:
        return Estimate(*wilson(hit / count, count, normal()), METHOD, count)
    effective = count / found.inflation
    return Estimate(*wilson(hit / count, effective, found.t), METHOD, effective)


def wilson(share: float, n: float, z: float) -> tuple[float, float]:
    """Wilson's interval (1927): all p with |share - p| <= z sqrt(p (1 - p) / n)."""
    middle = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    return max(middle - half, 0.0) if share > 0 else 0.0, min(middle + half, 1.0) if share < 1 else 1.0
