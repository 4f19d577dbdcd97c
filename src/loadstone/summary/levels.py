"""How many of something there were over time, from the moments at which each came and went: queues, requests in flight.

Pure. Moments are nanoseconds from a common start; the areas are in seconds, as floats: in nanoseconds the sum over a few
million requests does not fit 64 bits.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from loadstone.stats import Floats

Ints = NDArray[np.int64]


def levels(came_ns: Ints, went_ns: Ints, edges_s: Floats) -> Floats:
    """The time-weighted mean number between each edge and the next: the area under it, over their distance."""
    area = _area(came_ns, edges_s) - _area(went_ns, edges_s)
    mean: Floats = (np.diff(area) / np.diff(edges_s)).clip(min=0.0)
    return mean


def _area(moments_ns: Ints, edges_s: Floats) -> Floats:
    """The area up to each edge under the number of `moments_ns` that have passed."""
    moments_s = np.sort(moments_ns) / 1e9
    passed = np.searchsorted(moments_s, edges_s)
    sums = np.concatenate(([0.0], np.cumsum(moments_s)))
    return passed * edges_s - sums[passed]
