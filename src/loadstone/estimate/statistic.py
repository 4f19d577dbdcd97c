"""Statistics that can be drawn again: a ratio of sums, a percentile; each kept as parts of a run in the order of sending."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from loadstone.estimate.blocks import blocks
from loadstone.stats import BEYOND

Floats = NDArray[np.float64]
Draws = NDArray[np.float32]

PARTS = 512
"""Equal parts of a run at most; a shorter run has one for every request."""
BINS = 96
"""Bins at most of the values that a percentile is drawn from; fewer values have one each."""
FARTHEST = 12.0
"""Bins lie about a percentile to so many standard errors of independent values: three, where sixteen tell as much as one."""

SLACK = 0.3
"""Of values that do stand alone an estimate says that, but for so much."""


class Sums(NamedTuple):
    """A ratio of two sums: a mean (over the number of requests), a rate (over time), a share."""

    numerators: Floats
    """One for each part."""
    denominators: Floats
    apart: float = 0.0
    """By how much the sum of the denominators varies from run to run beside what its parts do."""

    @property
    def value(self) -> float:
        """The ratio; NaN without a denominator."""
        below = float(self.denominators.sum())
        return float(self.numerators.sum()) / below if below > 0 else math.nan

    def drawn(self, times: Draws, rng: np.random.Generator) -> Floats:
        """The ratio in every resample."""
        below = times @ self.denominators
        if self.apart:
            below = np.maximum(below + self.apart * rng.standard_normal(len(below)), 1e-9)
        drawn: Floats = times @ self.numerators / np.where(below > 0, below, np.nan)
        return drawn

    def influence(self) -> Floats:
        """What each part does to the ratio."""
        return (self.numerators - self.value * self.denominators) / max(
            float(self.denominators.mean()), 1e-300
        )


class Percentile(NamedTuple):
    """A percentile of values in bins."""

    q: float
    value: float
    """As it is of all values, without bins."""
    counts: NDArray[np.float32]
    """How many of each bin every part has."""
    low: Floats
    """Between which values every bin lies."""
    high: Floats

    def drawn(self, times: Draws, rng: np.random.Generator) -> Floats:
        """The percentile in every resample, evenly spread within a bin."""
        reached = np.cumsum(times @ self.counts, axis=1, dtype=np.float64)
        total = reached[:, -1:]
        # Half a sample is as far off as the percentile of all, which lies between two of them, is from either.
        target = np.maximum(self.q * total - 0.5, 0.0)
        bins = np.minimum((reached <= target).sum(axis=1), len(self.low) - 1)
        rows = np.arange(len(reached))
        before = np.where(bins > 0, reached[rows, bins - 1], 0.0)
        inside = np.maximum(reached[rows, bins] - before, 1e-12)
        share = np.clip((target[:, 0] - before) / inside, 0, 1)
        drawn: Floats = self.low[bins] + share * (self.high[bins] - self.low[bins])
        return np.where(total[:, 0] > 0, drawn, np.nan)

    def sharp(self) -> bool:
        """Whether as many values as tell the same, and stand alone, would have `BEYOND` on the percentile's far side."""
        inside = float(self.counts.sum())
        below = self.influence() / max(abs(self.value), 1e-300)
        variance = blocks(below).variance * len(below) / max(inside, 1.0) ** 2
        alone = self.q * (1 - self.q) / variance if variance > 0 else inside
        return min(alone, inside) * min(self.q, 1 - self.q) >= BEYOND * (1 - SLACK)

    def influence(self) -> Floats:
        """What each part does to the percentile, but for the density of the values there; relative to its own size."""
        below = self.counts[:, self.high <= self.value].sum(axis=1)
        whole = self.counts.sum(axis=1)
        influence: Floats = (self.q * whole - below).astype(np.float64) * self.value
        return influence


Statistic = Sums | Percentile


def part_of(count: int) -> NDArray[np.int64]:
    """Which part each of `count` requests, in the order of sending, is in."""
    return np.arange(count) * min(count, PARTS) // max(count, 1)


def sums(numerators: Floats, denominators: Floats, apart: float = 0.0) -> Sums:
    """The ratio of sums over requests; NaN in either leaves a request out."""
    known = np.isfinite(numerators) & np.isfinite(denominators)
    part, parts = part_of(len(numerators)), min(len(numerators), PARTS)
    return Sums(
        _added(part, np.where(known, numerators, 0.0), parts),
        _added(part, np.where(known, denominators, 0.0), parts),
        apart,
    )


def _added(part: NDArray[np.int64], values: Floats, parts: int) -> Floats:
    return np.bincount(part, values, parts).astype(np.float64)


def mean(values: Floats) -> Sums:
    """The mean over requests; NaN is none."""
    return sums(values, np.ones(len(values)))


def percentile(
    values: Floats,
    q: float,
    owners: NDArray[np.int64] | None = None,
    count: int = 0,
    weights: Floats | None = None,
) -> Percentile:
    """A percentile of values, one a request (NaN: none) or, with `owners`, any number of each of `count` requests.

    Where there are many values they are put into bins, which are fine about the percentile; `value` is that of all.
    """
    part = part_of(len(values)) if owners is None else part_of(count)[owners]
    parts = min(len(values) if owners is None else count, PARTS)
    known = np.isfinite(values)
    values, part = values[known], part[known]
    weights = None if weights is None else weights[known]
    order = np.sort(values)
    edges = _edges(order, q)
    at = np.searchsorted(edges, values, side="left")
    counts = np.bincount(part * len(edges) + at, weights, parts * len(edges)).astype(np.float32)
    exact = len(edges) == len(np.unique(order))
    low = edges if exact else np.concatenate(([order[0]], edges[:-1]))
    value = float(np.quantile(order, q)) if weights is None else _weighted(values, weights, q)
    return Percentile(q, value, counts.reshape(parts, len(edges)), low, edges)


def _weighted(values: Floats, weights: Floats, q: float) -> float:
    """The smallest value with a share q of the weights up to it."""
    order = np.argsort(values, kind="stable")
    reached = np.cumsum(weights[order])
    return float(values[order][min(int(np.searchsorted(reached, q * reached[-1])), len(order) - 1)])


def _edges(order: Floats, q: float) -> Floats:
    """The upper edges of the bins of sorted values: evenly spaced in rank about the percentile, as far as resamples go."""
    different = np.unique(order)
    if len(different) <= BINS:
        return different
    reach = FARTHEST * math.sqrt(q * (1 - q) / len(order))
    ranks = np.clip(q + reach * np.linspace(-1, 1, BINS - 1), 0, 1)
    return np.unique(np.append(np.quantile(order, ranks), order[-1]))
