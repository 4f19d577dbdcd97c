"""Pools: one value for each chunk of all answers, in bounded memory.

Up to `EXACT` samples are kept one by one and everything that is told of them is exact. More become a histogram, whose
percentiles are within 0.1 %. Knows no metric.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from loadstone.histogram import Histogram
from loadstone.metrics._streams import Ints, flat, not_first, parts
from loadstone.metrics._tables import Tables
from loadstone.stats import Floats, Weighted

Pooled = Floats | Weighted | Histogram
"""Samples in the form that `Samples` takes."""
EXACT = 2_000_000
"""Samples of one pool that are kept one by one: at most 32 MB."""
BATCHES = 64
"""Parts of a run, in time order, of which each has a distribution of its own: what an interval is made from."""
SEVERAL = 1.5
"""Tokens that, rounded, are more than one. Where a total is spread, a few chunks that brought two (half a
character cannot be sent) make every k a little more than 1."""


class Pool:
    """Samples of a number that is known beforehand, taken in part by part."""

    def __init__(self, count: int, weighted: bool) -> None:
        self.values: Pooled = Histogram()
        """What came in."""
        if count <= EXACT:
            self.values = np.empty(count, np.complex128) if weighted else np.empty(count, np.float64)
        self._filled = 0

    def add(self, values: Floats, weights: Floats | None = None) -> None:
        """Takes samples in; with weights where the pool is a weighted one."""
        if isinstance(self.values, Histogram):
            self.values.add(values, weights)
            return
        room = self.values[self._filled : self._filled + len(values)]
        room.real = values
        if weights is not None:
            room.imag = weights
        self._filled += len(values)


class Gaps(NamedTuple):
    """Gaps between consecutive tokens of all answers, in ms."""

    values: Pooled
    batches: tuple[Histogram, ...]
    """The gaps of each of up to `BATCHES` runs of equally many requests, in the order of sending."""
    several: float
    """The share of the gaps that brought more than one token."""


def gaps(tables: Tables) -> Gaps | None:
    """Gaps, pooled: for every gap g that brought k tokens, g / k with weight k; None where there is none."""
    shape = tables.shape
    count = int((shape.instants - shape.streams).sum())
    if not count:
        return None
    exact = Pool(count, weighted=True) if count <= EXACT else None
    batch = _batches(tables, shape.instants > shape.streams)
    batches = tuple(Histogram() for _ in range(int(batch.max()) + 1))
    several = 0
    for rows, values, weights in _gaps(tables):
        if exact is not None:
            exact.add(values, weights)
        of = batch[rows]
        for number in np.unique(of).tolist():
            own = of == number
            batches[number].add(values[own], weights[own])
        several += int((weights >= SEVERAL).sum())
    whole = Histogram.merged(batches) if exact is None else exact.values
    return Gaps(whole, batches, several / count)


def lags(tables: Tables) -> Pooled | None:
    """How late our process read each instant, in ms after its kernel stamp; requests without stamps left out.

    None where there is none.
    """
    stamped = tables.requests["kernel_stamps"].fill_null(False).to_numpy()
    count = int(tables.shape.instants[stamped].sum())
    if not count:
        return None
    pool = Pool(count, weighted=False)
    for part in parts(tables, "read_ns"):
        read_ns = flat(part.frame["read_ns"])[part.first_event[1:] - 1]
        chosen = np.repeat(stamped[part.rows], np.diff(part.begins))
        pool.add((read_ns - part.at_ns)[chosen] / 1e6)
    return pool.values


def _gaps(tables: Tables) -> Iterator[tuple[Ints, Floats, Floats]]:
    """Of every gap the position of its request, its time per token in ms, and its tokens."""
    for part in parts(tables):
        inner = not_first(part)
        tokens = part.tokens[inner]
        rows = np.repeat(part.rows, np.diff(part.begins) - 1)
        yield rows, np.diff(part.at_ns)[inner[1:]] / tokens / 1e6, tokens


def _batches(tables: Tables, chosen: NDArray[np.bool_]) -> NDArray[np.int8]:
    """For every request that was chosen, which run of equally many it is in, in the order of sending; 0 for all others."""
    rows = np.flatnonzero(chosen)
    sent_ns = tables.requests["sent_ns"].fill_null(0).to_numpy()[rows]
    found = np.zeros(len(chosen), np.int8)
    found[rows[np.argsort(sent_ns, kind="stable")]] = (
        np.arange(len(rows)) * min(BATCHES, len(rows)) // max(len(rows), 1)
    )
    return found
