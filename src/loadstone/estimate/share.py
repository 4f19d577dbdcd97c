"""Intervals for shares of things that hang together: the exact one, of as many trials as independent ones would tell as much.

Each end is held to its own 2.5 %, since a verdict goes by one end alone. In a queue the end that a verdict of PASS goes by
is the dangerous one: a run that missed the crowd has few hits, and these few show nothing of crowds. So the end
that is nearer to one half is set by the geometric mean of how hits hang together and how the values do that made them, where
that is more than the hits show; measured on M/M/1 queues (bench coverage).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from loadstone.estimate import LEAST, Estimate, clopper_pearson, too_few
from loadstone.estimate.skewness import handed_on, reach
from loadstone.estimate.spread import Floats, alone, means, of_batches, spread
from loadstone.estimate.student import normal

METHOD = "Clopper-Pearson"


def share(hits: NDArray[np.bool_], values: Floats | None = None, lead: int = 0) -> Estimate:
    """The interval of the probability of a hit, from hits and misses in time order.

    How they hang together is asked of all but the first `lead`: where a load begins with many at once, these tell of its
    beginning alone. They count like all others.

    n is divided by how many times the variance of the share is that of independent trials, and by (t / z)^2 with Student's
    t for what is known of that (Korn and Graubard, 1998). Where all are hits, or none, they cannot tell. Then the `values`
    do that made them hits or misses; without such values each counts as a trial of its own.
    """
    count = len(hits)
    if count < LEAST:
        return too_few(METHOD, count)
    if values is not None and np.ptp(values) == 0:
        values = None  # all the same: what their mean differs by from them is rounding
    seen = float(np.mean(hits))
    if count - lead >= LEAST:
        hits, values = hits[lead:], None if values is None else values[lead:]
    series = hits.astype(np.float64) if 0 < hits.mean() < 1 else values
    if series is None or (alone(series) and (values is None or alone(values))):
        return _of_trials(seen, count, count, count)
    found = spread(series)
    other = found if values is None else spread(values)
    more = max(found.inflation, math.sqrt(found.inflation * other.inflation))
    down, up = reach(max(found.t, other.t), _skew(hits, values))
    rare = seen <= 0.5
    below = _as_many(count, found.inflation if rare else more, down)
    above = _as_many(count, more if rare else found.inflation, up)
    return _of_trials(seen, below, above, count / found.inflation)


def _as_many(count: int, inflation: float, reached: float) -> float:
    """The independent trials that tell as much, and never more than there were."""
    return min(count / inflation * (normal() / reached) ** 2, count)


def _of_trials(seen: float, below: float, above: float, effective: float) -> Estimate:
    low, high = clopper_pearson.low(seen, below), clopper_pearson.high(seen, above)
    return Estimate(low, high, METHOD, effective)


def _skew(hits: NDArray[np.bool_], values: Floats | None) -> float:
    """Of the share of hits, as far as it goes up and down with the values that make the hits.

    Of no hits, or hits alone, it has none: a bend of the interval would be that of the values, far from the limit as they may be.
    """
    if values is None or hits.all() or not hits.any():
        return 0.0
    return of_batches(means(values)).skew * handed_on(means(values), means(hits.astype(np.float64)))
