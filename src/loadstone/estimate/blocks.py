"""Resampling in blocks: how many requests in a row hang together, and draws that keep them together.

A request that waits is followed by others that wait, so requests drawn one by one would vary less than runs do. Blocks as
long as that lasts are drawn instead: the circular block bootstrap (Politis and Romano, 1992), its length by the rule of Politis
and White (2004, with the correction of Patton, Politis and White, 2009).
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

SHORTEST = 8
"""A series shorter than this is taken for one of independent elements."""
MOST_WIDENED = 2.0
"""So much at most is an error widened for what blocks cut apart; more is noise of the correlations."""


class Blocks(NamedTuple):
    """How a series hangs together."""

    length: float
    """Elements in one block."""
    widened: float
    """Blocks cut apart what lies on either side of an end, so their spread is too small by this factor."""
    inefficiency: float
    """So many elements tell as much as one that stood alone; at least 1."""
    variance: float
    """Of the sum of all elements, from run to run, over their number."""


def blocks(series: Floats) -> Blocks:
    """The block length that serves the mean of a series best, by its autocorrelations.

    These count up to twice the lag from which on none is told from 0 (for some lags in a row all are below
    2 sqrt(log10 n / n)), tapered by a flat-top window. With R(k) for them: G is the sum of |k| R(k), g that of R(k), the length
    (2 G^2 / D)^(1/3) n^(1/3) with D = 4/3 g^2. What a block of that length leaves out of g is made good by `widened`.
    """
    count = len(series)
    centred = series - series.mean()
    spread = float(centred @ centred) / count if count else 0.0
    if count < SHORTEST or not spread > (1e-12 * max(float(np.abs(series).max()), 1e-300)) ** 2:
        return Blocks(1.0, 1.0, 1.0, spread)
    lags = min(count - 1, max(2 * math.ceil(math.sqrt(count)), 10))
    power = np.abs(np.fft.rfft(centred, 2 * count)) ** 2
    correlations = np.fft.irfft(power)[: lags + 1] / count / spread
    reach = _reach(correlations, count, lags)
    lag = np.arange(1, reach + 1)
    window = np.clip(2 * (1 - lag / reach), 0, 1) * correlations[1 : reach + 1]
    whole = 1 + 2 * float(window.sum())
    leaning = 2 * float((lag * window).sum())
    if whole <= 0 or leaning == 0:
        return Blocks(1.0, 1.0, 1.0, spread)
    length = (1.5 * (leaning / whole) ** 2 * count) ** (1 / 3)
    length = min(max(length, 1.0), 3 * math.sqrt(count), count / 3)
    within = 1 + 2 * float((np.clip(1 - lag / length, 0, None) * correlations[1 : reach + 1]).sum())
    widened = whole / within if 0 < within < whole else 1.0
    # Correlations about the sample's own mean are too small, by the share of the series that a block is.
    widened = math.sqrt(widened / (1 - length / count))
    return Blocks(length, min(widened, MOST_WIDENED), max(whole, 1.0), spread * whole)


def _reach(correlations: Floats, count: int, lags: int) -> int:
    """Twice the lag after which no correlation is told from 0, at most all that are known."""
    run = max(5, math.ceil(math.sqrt(math.log10(count))))
    small = np.abs(correlations[1:]) < 2 * math.sqrt(math.log10(count) / count)
    together = np.convolve(small, np.ones(run), "valid") == run
    last = int(np.argmax(together)) if together.any() else lags
    return min(max(2 * last, 1), lags)


@lru_cache(maxsize=32)
def draws(count: int, length: int, resamples: int, seed: int) -> NDArray[np.float32]:
    """How often each of `count` elements is in each resample; every row adds up to `count`.

    The same for the same arguments, and kept: many statistics are drawn alike. Read only.
    """
    rng = np.random.default_rng(seed)
    starts = rng.integers(0, count, (resamples, math.ceil(count / length)))
    ends = starts + length
    ends[:, -1] = starts[:, -1] + count - length * (starts.shape[1] - 1)
    rows = np.arange(resamples)[:, None] * (2 * count + 1)
    size = resamples * (2 * count + 1)
    edges = np.bincount((rows + starts).ravel(), minlength=size) - np.bincount(
        (rows + ends).ravel(), minlength=size
    )
    times = np.cumsum(edges.reshape(resamples, 2 * count + 1), axis=1)[:, :-1]
    return (times[:, :count] + times[:, count:]).astype(np.float32)
