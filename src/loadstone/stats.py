"""Summaries of samples: mean, spread, percentiles, which percentiles too few samples support, and what those
say that did not end.

A weighted sample is one complex number, `value + weight * 1j`. numpy sorts complex numbers by their real
part, in place, so a pool of weighted values is sorted in the 16 bytes a sample that it takes anyway; an
`argsort` and a copy would double that. `summarise` consumes the array it is given. Knows no units.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeVar, cast

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Weighted = NDArray[np.complex128]
Number = TypeVar("Number", np.float64, np.complex128)

PERCENTILES: dict[str, float] = {
    "p1": 0.01,
    "p5": 0.05,
    "p10": 0.10,
    "p25": 0.25,
    "p50": 0.50,
    "p75": 0.75,
    "p90": 0.90,
    "p95": 0.95,
    "p99": 0.99,
    "p99_9": 0.999,
}
"""Percentiles of every distribution, under the names they have in the report."""

BEYOND = 10
"""A percentile needs this many samples expected on its far side, or it is thin."""

_BLOCK = 1 << 16
"""Samples looked at together where a temporary array is needed."""


@dataclass(frozen=True)
class Summary:
    """A distribution in a few numbers.

    `count` is the number of samples, for weighted ones the sum of their weights, rounded. `std` is the
    population's: the root of the mean squared distance from the mean, nothing subtracted from the count.
    """

    count: int
    mean: float
    min: float
    max: float
    std: float
    percentiles: dict[str, float]
    thin: tuple[str, ...]


def weighted(values: Floats, weights: Floats) -> Weighted:
    """Weighted samples in the form that `summarise` takes."""
    pairs = np.empty(len(values), np.complex128)
    pairs.real = values
    pairs.imag = weights
    return pairs


def summarise(samples: Floats | Weighted) -> Summary:
    """The summary of at least one sample; sorts `samples` in place and overwrites weights by their sums.

    Percentile q of n sorted unweighted samples is read at position q (n - 1), linearly between neighbours
    (numpy's default, definition 7 of Hyndman and Fan, 1996). Of weighted samples it is the mean of the
    step function "value at cumulative weight t" over q (W - 1) <= t <= q (W - 1) + 1, W being the sum of
    the weights: with whole weights just what the unweighted definition gives when every sample is repeated
    as often as its weight says, and defined for fractions as well. For `thin` a weighted sample counts once:
    the tokens of one chunk arrived together and are one observation.

    Raises `ValueError` when there is no sample, or no weight above 0.
    """
    if len(samples) == 0:
        raise ValueError("a summary needs at least one sample")
    samples.sort()
    if np.iscomplexobj(samples):
        return _summarise_weighted(cast(Weighted, samples))
    return _summarise_equal(cast(Floats, samples))


@dataclass(frozen=True)
class Survival:
    """Percentiles of times of which some are only known to be longer than what was seen.

    `percentiles` has None where the curve does not come down far enough; such a percentile is at least `least`, the
    longest time seen.
    """

    percentiles: dict[str, float | None]
    least: float


_ROUNDING = 1e-9
"""What a product of a million factors can be off by is far less, and a step of a million samples far more."""


def survival(ended: Floats, censored: Floats) -> Survival:
    """The percentiles of right-censored times, by the product-limit estimator (Kaplan and Meier, 1958).

    `ended` are times that were seen to their end, `censored` those that were broken off and would have been longer.
    S(t), the share of times longer than t, is the product of (1 - d / n) over the moments up to t at which d of the n
    times still under observation ended; what was broken off at the very moment of an end was still under observation.
    Percentile q is the smallest t with S(t) <= 1 - q. It rests on one assumption: what was broken off would have gone
    on like the others that had lasted as long.

    With nothing censored 1 - S is the share of samples up to t, and percentile q is the sample of rank ceil(q n)
    (definition 1 of Hyndman and Fan): never above the next sample, where `summarise` reads between two of them. Adding
    a censored time lowers no percentile.

    Raises `ValueError` when there is no time at all.
    """
    count = len(ended) + len(censored)
    if count == 0:
        raise ValueError("a survival curve needs at least one time")
    times = np.concatenate((ended, censored))
    broken = np.zeros(count, np.bool_)
    broken[len(ended) :] = True
    order = np.lexsort((broken, times))
    times, broken = times[order], broken[order]
    watched = np.arange(count, 0, -1)
    # Ends at the same moment are taken one after the other: (1 - 1/n)(1 - 1/(n-1)) = 1 - 2/n.
    left = np.cumprod(np.where(broken, 1.0, 1.0 - 1.0 / watched))
    found: dict[str, float | None] = {}
    for name, q in PERCENTILES.items():
        there = np.searchsorted(-left, -(1.0 - q + _ROUNDING))
        found[name] = float(times[there]) if there < count else None
    return Survival(found, float(times[-1]))


def thin(count: int) -> tuple[str, ...]:
    """Names of the percentiles that `count` samples do not support.

    Percentile q is thin when fewer than `BEYOND` samples are expected beyond it, on the side that has fewer:
    count * min(q, 1 - q) < 10. So p50 takes 20 samples, p99 takes 1,000, p99.9 takes 10,000.
    """
    enough = BEYOND * (1 - 1e-9)  # 1000 * (1 - 0.99) is a hair below 10 in binary
    return tuple(name for name, q in PERCENTILES.items() if count * min(q, 1 - q) < enough)


def _summarise_equal(values: Floats) -> Summary:
    if values[0] == values[-1]:  # a mean of equal numbers may differ from them by its rounding
        return _summarise_one(float(values[0]), len(values))
    mean = float(values.mean())
    variance = sum(float(np.square(block - mean).sum()) for block in _blocks(values)) / len(values)
    return Summary(
        count=len(values),
        mean=mean,
        min=float(values[0]),
        max=float(values[-1]),
        std=variance**0.5,
        percentiles={name: _at(values, q) for name, q in PERCENTILES.items()},
        thin=thin(len(values)),
    )


def _summarise_one(value: float, count: int) -> Summary:
    """Of samples that are all the same."""
    return Summary(count, value, value, value, 0.0, dict.fromkeys(PERCENTILES, value), thin(count))


def _at(values: Floats, q: float) -> float:
    """Sorted values read at position q (n - 1)."""
    position = q * (len(values) - 1)
    below = int(position)
    above = min(below + 1, len(values) - 1)
    low, high = float(values[below]), float(values[above])
    return low + (high - low) * (position - below)


def _summarise_weighted(pairs: Weighted) -> Summary:
    values, weights = pairs.real, pairs.imag
    total = float(weights.sum())
    if not total > 0:
        raise ValueError("a weighted summary needs a weight above 0")
    mean = sum(float((block.real * block.imag).sum()) for block in _blocks(pairs)) / total
    squares = sum(float((np.square(block.real - mean) * block.imag).sum()) for block in _blocks(pairs))
    _accumulate(weights)
    return Summary(
        count=max(round(total), 1),
        mean=mean,
        min=float(values[0]),
        max=float(values[-1]),
        std=(squares / total) ** 0.5,
        percentiles={name: _over(values, weights, q) for name, q in PERCENTILES.items()},
        thin=thin(len(pairs)),
    )


def _accumulate(weights: Floats) -> None:
    """Overwrites weights by their running sums, a block at a time: numpy would make a whole copy."""
    before = 0.0
    for start in range(0, len(weights), _BLOCK):
        block = weights[start : start + _BLOCK]
        block[:] = np.cumsum(block) + before
        before = float(block[-1])


def _over(values: Floats, sums: Floats, q: float) -> float:
    """The mean of the step function over one sample's width; `sums` are the running sums of the weights."""
    total = float(sums[-1])
    width = min(1.0, total)
    start = q * (total - width)
    first = min(int(np.searchsorted(sums, start, side="right")), len(sums) - 1)
    last = min(int(np.searchsorted(sums, start + width, side="left")), len(sums) - 1)
    inner = np.clip(sums[first:last], start, start + width)
    edges = np.concatenate(([start], inner, [start + width]))
    low, high = float(values[first]), float(values[last])
    # Added up from the lowest value, so that equal values give exactly that value.
    return min(low + float(np.dot(values[first : last + 1] - low, np.diff(edges))) / width, high)


def _blocks(array: NDArray[Number]) -> Iterator[NDArray[Number]]:
    return (array[start : start + _BLOCK] for start in range(0, len(array), _BLOCK))
