"""The measured phase over time: what was offered, sent and completed in each bin, and how much was in flight."""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.typing import NDArray

from loadstone.clock import SECOND_NS
from loadstone.metrics import Tables
from loadstone.report import Series
from loadstone.stats import Floats

MOST_BINS = 600
STEPS_S = (1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600)

Ints = NDArray[np.int64]


def series(tables: Tables) -> Series:
    """Bins of 1 s from the start of the phase, or of the smallest step that makes at most `MOST_BINS` of them."""
    left_ns = tables.left_ns.drop_nulls()
    if tables.phase is None or left_ns.is_empty():
        return Series(step_s=1.0, offered=(), sent=(), completed=(), in_flight=())
    start_ns = tables.phase.start_ns
    last_s = max((_last(left_ns) - start_ns) / 1e9, (_last(tables.requests["due_ns"]) - start_ns) / 1e9)
    step_s = _step_s(last_s)
    edges_ns = np.arange(int(last_s // step_s) + 2, dtype=np.int64) * (step_s * SECOND_NS)

    def since_start(moments_ns: pl.Series) -> Ints:
        return moments_ns.drop_nulls().to_numpy() - start_ns

    sent_ns = since_start(tables.requests["sent_ns"])
    return Series(
        step_s=float(step_s),
        offered=_per_bin(since_start(tables.requests["due_ns"]), edges_ns),
        sent=_per_bin(sent_ns, edges_ns),
        completed=_per_bin(
            since_start(tables.requests["done_ns"].filter(pl.Series(tables.succeeded))), edges_ns
        ),
        in_flight=_in_flight(sent_ns, since_start(left_ns), edges_ns),
    )


def _last(moments_ns: pl.Series) -> int:
    last = moments_ns.max()
    return last if isinstance(last, int) else 0


def _step_s(last_s: float) -> int:
    """The smallest step with at most `MOST_BINS` bins; beyond the list, whole hours."""
    fitting = (step for step in STEPS_S if last_s < step * MOST_BINS)
    return next(fitting, STEPS_S[-1] * (1 + int(last_s // (STEPS_S[-1] * MOST_BINS))))


def _per_bin(moments_ns: Ints, edges_ns: Ints) -> tuple[int, ...]:
    """How many moments lie in each bin; one before the start is in the first."""
    bins = np.maximum(moments_ns, 0) // edges_ns[1]
    return tuple(np.bincount(bins, minlength=len(edges_ns) - 1).tolist())


def _in_flight(sent_ns: Ints, left_ns: Ints, edges_ns: Ints) -> tuple[float, ...]:
    """The area under the number of requests in flight, by bin, over the bin's width."""
    edges_s = edges_ns / 1e9
    area = _area(sent_ns, edges_s) - _area(left_ns, edges_s)
    return tuple((np.diff(area) / edges_s[1]).clip(min=0.0).tolist())


def _area(moments_ns: Ints, edges_s: Floats) -> Floats:
    """The area up to each edge under the number of `moments_ns` that have passed.

    In seconds as floats: in nanoseconds the sum over a few million requests does not fit 64 bits.
    """
    moments_s = np.sort(moments_ns) / 1e9
    passed = np.searchsorted(moments_s, edges_s)
    sums = np.concatenate(([0.0], np.cumsum(moments_s)))
    return passed * edges_s - sums[passed]
