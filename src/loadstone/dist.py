"""Stateless draws: the value at a position of a stream, without those before it.

One rule: a draw depends on its seed and its index only, so any process may compute any part of a
workload, in any order, and get the same one. Pure arithmetic; knows nothing of what is drawn for.
"""

from __future__ import annotations

import hashlib
from statistics import NormalDist

SHORTEST_TOKENS = 1


def draw(seed: int, index: int, n_bytes: int) -> bytes:
    """`n_bytes` random bytes, the first ones of SHAKE-128 over seed and index."""
    return hashlib.shake_128(b"%d:%d" % (seed, index)).digest(n_bytes)


def uniform(seed: int, index: int) -> float:
    """A number strictly between 0 and 1, in steps of 2**-32."""
    return (int.from_bytes(draw(seed, index, 4), "little") + 0.5) / 2**32


def normal(seed: int, index: int, mean: float, stddev: float, least: float) -> float:
    """A normal number, truncated at `least`; `mean` when `stddev` is 0.

    With u uniform, F the distribution function and F^-1 its inverse: F^-1(F(least) + u (1 - F(least))).
    """
    if stddev == 0:
        return mean
    bell = NormalDist(mean, stddev)
    left_out = bell.cdf(least)
    return bell.inv_cdf(left_out + uniform(seed, index) * (1 - left_out))


def normal_length(seed: int, index: int, mean: float, stddev: float) -> int:
    """A length in tokens: normal, cut at 1 token, rounded; `round(mean)` when `stddev` is 0.

    Cut means truncated: the part of the bell below 0.5 (which would round to 0 or less) is left out
    and the rest scaled up, as if such draws were repeated. Clamping them instead would send a heap
    of one-token prompts. With u uniform, F the distribution function and F^-1 its inverse:

        length = round(F^-1(F(0.5) + u (1 - F(0.5))))

    The mean of the draws is `mean` to within 0.5 % as long as `stddev` is at most `mean / 3`; above
    that it rises by stddev * phi(a) / (1 - Phi(a)) with a = (0.5 - mean) / stddev.
    """
    if stddev == 0:
        return max(SHORTEST_TOKENS, round(mean))
    return max(SHORTEST_TOKENS, round(normal(seed, index, mean, stddev, SHORTEST_TOKENS - 0.5)))
