"""How much farther an interval reaches up than down, where what it is made of errs unevenly.

The mean of a queue's latencies is mostly a little too low, and now and then much too high. So Student's t is bent by Hall's
cubic transformation (Hall, 1992; in the form of Willink, 2005, and of N-Skart),

    G(t) = (cbrt(1 + 6 a (t - a)) - 1) / (2 a),    a = skew / 6,

and the interval is estimate - G(t) * error .. estimate - G(-t) * error.
"""

from __future__ import annotations

import math

from loadstone.estimate.spread import Floats

_STRAIGHT = 1e-6
"""A skewness below which the transformation is a straight line."""


def reach(t: float, skew: float) -> tuple[float, float]:
    """How many errors an interval reaches down and up; `skew` is that of what is estimated."""
    a = skew / 6
    if abs(a) < _STRAIGHT:
        return t, t
    return _bent(t, a), -_bent(-t, a)


def handed_on(values: Floats, followers: Floats) -> float:
    """The share of their skewness that the means of parts hand on to another figure of the same parts: -1 to 1.

    Zeros and ones, "above the median or not", show no tail: half are above, whether the crowd of the year was in the run
    or not. But as far as they go up and down with the latencies they err as unevenly. Of a figure that is r times
    another one and something even beside, the skewness is r^3 times the other's, with their correlation r.
    """
    one, other = values - values.mean(), followers - followers.mean()
    square = float(one @ one) * float(other @ other)
    return (float(one @ other) / math.sqrt(square)) ** 3 if square > 0 else 0.0


def _bent(t: float, a: float) -> float:
    return (math.cbrt(1 + 6 * a * (t - a)) - 1) / (2 * a)
