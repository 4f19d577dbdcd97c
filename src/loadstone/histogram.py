"""A distribution in bounded memory: mergeable, with percentiles within 0.1 % and everything else exact.

Bins are log-linear: each power of two is cut into 512 equal parts, so a bin is known by the exponent and the
first nine bits of the fraction of a double, and is found by one shift of its bits. Knows no units.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import inf, sqrt

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_FRACTION = 9
"""Bits of the fraction that tell bins apart: 2^9 = 512 bins for each power of two."""

RELATIVE_ERROR = 2.0 ** -(_FRACTION + 1)
"""How far a quantile may be off, as a share of its true value: 0.098 %, stated as 0.1 %."""

_SHIFT = 52 - _FRACTION
_SMALLEST = np.finfo(np.float64).smallest_normal
_BLOCK = 1 << 16
"""Values looked at together: what is made of them stays in the processor's cache."""


class Histogram:
    """Samples of at least 0, with weights or without, as the weight in each bin.

    A bin between 2^e and 2^(e + 1) is 2^e / 512 wide and stands for its middle. A value v in it is at least 2^e, so it is
    at most half a width, 2^e / 1024 <= v / 1024, from the middle: less than 0.1 % of itself. Zero has a bin of its own;
    what is smaller than the smallest normal double (2.2e-308) counts as zero.

    A quantile is a mean of neighbouring samples in their order (see `stats.summarise`, whose definitions hold here
    too). Bins keep the order, and each sample is moved by at most 0.1 % of itself; none is negative, so the
    mean of the moved ones is off by at most 0.1 % of the mean: **a quantile is within 0.1 % of that of the samples**.
    `count`, `weight`, `min` and `max` are exact, `mean` and `std` but for rounding.

    Memory: 16 bytes for each bin that holds something, whatever the number of samples. Values between 1 ms and 1 s
    fill at most 5,120 bins: 82 kB.
    """

    __slots__ = ("_keys", "_mean", "_squares", "_weights", "count", "max", "min", "weight")

    def __init__(self) -> None:
        self.count = 0
        """Samples, whatever they weigh."""
        self.weight = 0.0
        """The sum of the weights; without weights, the count."""
        self.min = inf
        self.max = -inf
        self._mean = 0.0
        self._squares = 0.0
        """The weighted sum of the squared distances from the mean."""
        self._keys = np.empty(0, np.int64)
        """The bins that hold something, ascending: the first bits of the values in them."""
        self._weights = np.empty(0, np.float64)

    @classmethod
    def merged(cls, parts: Iterable[Histogram]) -> Histogram:
        """All samples of some histograms in a new one."""
        whole = cls()
        for part in parts:
            whole.merge(part)
        return whole

    @property
    def mean(self) -> float:
        """The weighted mean; NaN without a weight above 0."""
        return self._mean if self.weight > 0 else float("nan")

    @property
    def std(self) -> float:
        """The root of the mean squared distance from the mean, nothing subtracted from the count; NaN like `mean`."""
        return sqrt(self._squares / self.weight) if self.weight > 0 else float("nan")

    def add(self, values: Floats, weights: Floats | None = None) -> None:
        """Takes samples in, without `weights` as of weight 1 each.

        Raises `ValueError` when a value is negative or not finite, or a weight is.
        """
        for start in range(0, len(values), _BLOCK):
            block = slice(start, start + _BLOCK)
            self._add(values[block], None if weights is None else weights[block])

    def merge(self, other: Histogram) -> None:
        """Takes the samples of another histogram in; the other one stays as it is."""
        self._pool(other._keys, other._weights)
        self._combine(other.weight, other._mean, other._squares)
        self.count += other.count
        self.min = min(self.min, other.min)
        self.max = max(self.max, other.max)

    def quantile(self, q: float) -> float:
        """Quantile q, within 0.1 %, by the definition of `stats.summarise`; NaN without a weight above 0.

        The mean of the step function "value at cumulative weight t" over q (W - 1) <= t <= q (W - 1) + 1, W being the
        sum of the weights: for unweighted samples just their value at position q (n - 1), linear between neighbours.
        """
        if not self.weight > 0:
            return float("nan")
        sums = np.cumsum(self._weights)
        total = float(sums[-1])
        width = min(1.0, total)
        start = q * (total - width)
        last_bin = len(sums) - 1
        first = min(int(np.searchsorted(sums, start, side="right")), last_bin)
        last = min(int(np.searchsorted(sums, start + width, side="left")), last_bin)
        inner = np.clip(sums[first:last], start, start + width)
        edges = np.concatenate(([start], inner, [start + width]))
        # No sample lies beyond the extremes, so to stop there brings none farther from its value.
        values = np.clip(_middles(self._keys[first : last + 1]), self.min, self.max)
        low = float(values[0])
        return min(low + float(np.dot(values - low, np.diff(edges))) / width, float(values[-1]))

    def share_below(self, x: float) -> float:
        """The share of the weight whose values are below `x`, or below some value within 0.1 % of it; NaN without weight.

        Bins whose middle is below `x` count: so the limit is moved to the nearer edge of the bin that it lies in.
        """
        if not self.weight > 0:
            return float("nan")
        if x <= self.min:
            return 0.0
        if x > self.max:
            return 1.0
        below = int(np.searchsorted(_middles(self._keys), x, side="left"))
        return min(float(self._weights[:below].sum()) / self.weight, 1.0)

    @property
    def nbytes(self) -> int:
        """What the bins take in memory."""
        return self._keys.nbytes + self._weights.nbytes

    def _add(self, values: Floats, weights: Floats | None) -> None:
        low, high = float(values.min()), float(values.max())
        if not (low >= 0 and high < inf):
            raise ValueError(f"a histogram takes finite values of at least 0, not {low} to {high}")
        if weights is not None and not (weights.min() >= 0 and weights.max() < inf):
            raise ValueError("a histogram takes finite weights of at least 0")
        weight = float(len(values) if weights is None else weights.sum())
        self.count += len(values)
        self.min = min(self.min, low)
        self.max = max(self.max, high)
        if not weight > 0:
            return
        # Not np.dot: of so many numbers it starts threads, which wait for each other where cores are taken.
        mean = float(values.mean() if weights is None else (values * weights).sum() / weight)
        apart = np.square(values - mean)
        self._combine(weight, mean, float((apart if weights is None else apart * weights).sum()))
        self._pool(*_binned(values, weights))

    def _combine(self, weight: float, mean: float, squares: float) -> None:
        """Mean and squared distances of both (Chan, Golub and LeVeque, 1979): stable, whatever their order."""
        if not weight > 0:
            return
        total = self.weight + weight
        apart = mean - self._mean
        self._mean += apart * (weight / total)
        self._squares += squares + apart * apart * (self.weight * (weight / total))
        self.weight = total

    def _pool(self, keys: NDArray[np.int64], weights: Floats) -> None:
        """Adds weights to bins, making those that were not there."""
        union, which = np.unique(np.concatenate((self._keys, keys)), return_inverse=True)
        held = np.concatenate((self._weights, weights))
        self._weights = np.asarray(np.bincount(which, held, len(union)), np.float64)
        self._keys = union


def _binned(values: Floats, weights: Floats | None) -> tuple[NDArray[np.int64], Floats]:
    """The bins of some values, ascending, and the weight in each."""
    normal = np.where(values < _SMALLEST, 0.0, values)  # -0.0 becomes 0.0 too: its sign would be a bit
    keys = normal.view(np.int64) >> _SHIFT
    lowest = int(keys[keys > 0].min(initial=np.iinfo(np.int64).max))
    # Bin 0 is zero's; the others begin at the lowest one there is, so that the counts are few.
    places = np.where(keys > 0, keys - (lowest - 1), 0)
    held = np.asarray(np.bincount(places, weights), np.float64)
    filled = np.flatnonzero(held)
    return np.where(filled > 0, filled + (lowest - 1), 0), held[filled]


def _middles(keys: NDArray[np.int64]) -> Floats:
    """The values that bins stand for: the middles of those, and 0 for zero's."""
    halfway = np.int64(1) << (_SHIFT - 1)
    return np.where(keys == 0, 0.0, ((keys << _SHIFT) + halfway).view(np.float64))
