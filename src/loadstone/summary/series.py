"""The measured phases over time: what was offered, sent and completed in each bin, what was in flight, what waited."""

from __future__ import annotations

import msgspec
import numpy as np
import polars as pl

from loadstone.clock import SECOND_NS
from loadstone.metrics import Tables
from loadstone.report import Series, Stretch
from loadstone.stats import Floats
from loadstone.summary.levels import Ints, levels
from loadstone.summary.queue import waited
from loadstone.summary.waits import LATENCY, TTFT, medians

MOST_BINS = 600
STEPS_S = (1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600)


def series(tables: Tables) -> Series:
    """Bins of 1 s from the start of the first phase, or of the smallest step that makes at most `MOST_BINS` of them."""
    left_ns, start_ns = tables.left_ns.drop_nulls(), tables.start_ns
    if start_ns is None or left_ns.is_empty():
        return Series(step_s=1.0, offered=(), sent=(), completed=(), in_flight=())
    last_ns = max(map(_last, (left_ns, tables.requests["due_ns"], tables.left_queue_ns)))
    last_s = (last_ns - start_ns) / 1e9
    step_s = _step_s(last_s)
    bins = int(last_s // step_s) + 1
    edges_s: Floats = np.arange(bins + 1, dtype=np.float64) * step_s

    def since_start(moments_ns: pl.Series) -> Ints:
        return moments_ns.drop_nulls().to_numpy() - start_ns

    def per_bin(moments_ns: pl.Series) -> tuple[int, ...]:
        return tuple(np.bincount(_bins(since_start(moments_ns), step_s), minlength=bins).tolist())

    requests = tables.requests
    flown = levels(since_start(requests["sent_ns"]), since_start(left_ns), edges_s)
    found = Series(
        step_s=float(step_s),
        offered=per_bin(requests["due_ns"]),
        sent=per_bin(requests["sent_ns"]),
        completed=per_bin(requests["done_ns"].filter(pl.Series(tables.succeeded))),
        in_flight=tuple(flown.tolist()),
        phases=_stretches(tables, start_ns),
    )
    return _with_due(found, tables, start_ns, edges_s)


def _with_due(found: Series, tables: Tables, start_ns: int, edges_s: Floats) -> Series:
    """The same with what is counted from due times, where requests have any."""
    waiting = waited(tables)
    if waiting is None:
        return found
    came_ns, went_ns = waiting
    due_ns = tables.requests["due_ns"].fill_null(start_ns).to_numpy() - start_ns
    bins, count = _bins(due_ns, int(found.step_s)), len(edges_s) - 1
    return msgspec.structs.replace(
        found,
        queued=tuple(levels(came_ns - start_ns, went_ns - start_ns, edges_s).tolist()),
        latency_from_due_p50=medians(LATENCY, tables, bins, count),
        ttft_from_due_p50=medians(TTFT, tables, bins, count),
    )


def _stretches(tables: Tables, start_ns: int) -> tuple[Stretch, ...]:
    return tuple(
        Stretch(name=log.name, start_s=(log.start_ns - start_ns) / 1e9, stop_s=(log.stop_ns - start_ns) / 1e9)
        for log in tables.phases
    )


def _last(moments_ns: pl.Series) -> int:
    last = moments_ns.max()
    return last if isinstance(last, int) else 0


def _step_s(last_s: float) -> int:
    """The smallest step with at most `MOST_BINS` bins; beyond the list, whole hours."""
    fitting = (step for step in STEPS_S if last_s < step * MOST_BINS)
    return next(fitting, STEPS_S[-1] * (1 + int(last_s // (STEPS_S[-1] * MOST_BINS))))


def _bins(moments_ns: Ints, step_s: int) -> Ints:
    """The bin of each moment; one before the start is in the first."""
    return np.maximum(moments_ns, 0) // (step_s * SECOND_NS)
