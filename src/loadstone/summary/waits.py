"""Latencies counted from due times, as they changed while the load lasted."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from loadstone.metrics import NEEDS, Each, Tables, all_metrics
from loadstone.report import Growth
from loadstone.stats import survival
from loadstone.summary.levels import Ints

LATENCY = "request_latency_from_due"
TTFT = "time_to_first_token_from_due"
LEAST_ANSWERS = 8
"""A quarter of fewer is one request, and says nothing."""


def medians(name: str, tables: Tables, bins: Ints, count: int) -> tuple[float | None, ...] | None:
    """The median of a metric over the requests of each bin; None where the metric has no value at all.

    What we cut off or never sent counts as far as it had come (Kaplan-Meier); a median that lies beyond is null. So is
    that of a bin of whose requests half or more were cut off otherwise than as asked: the others are the lucky ones.
    """
    each = _each(name, tables)
    if each is None:
        return None
    cut = np.full(len(bins), np.nan) if each.cut_off is None else each.cut_off
    broken = np.isfinite(cut)
    stopped = broken & ~tables.cancelled
    seen = np.isfinite(each.values) & ~broken & (tables.succeeded | tables.cut_off)
    known = np.flatnonzero(broken | seen)
    order = known[np.argsort(bins[known], kind="stable")]
    ends = np.searchsorted(bins[order], np.arange(count + 1))
    found = (order[start:stop] for start, stop in pairwise(ends))
    return tuple(
        survival(each.values[one[seen[one]]], cut[one[broken[one]]]).percentiles["p50"]
        if 2 * stopped[one].sum() < len(one)
        else None
        for one in found
    )


def growth(tables: Tables) -> Growth | None:
    """The medians of the answers that were due first and last; None where they have no due times or are too few."""
    each = _each(LATENCY, tables)
    if each is None:
        return None
    answered = np.flatnonzero(np.isfinite(each.values) & tables.succeeded)
    if len(answered) < LEAST_ANSWERS:
        return None
    due_ns = tables.requests["due_ns"].to_numpy()[answered]
    ordered = each.values[answered[np.argsort(due_ns, kind="stable")]]
    quarter = len(ordered) // 4
    return Growth(first_ms=float(np.median(ordered[:quarter])), last_ms=float(np.median(ordered[-quarter:])))


def _each(name: str, tables: Tables) -> Each | None:
    """A metric's value of every request; None where it cannot be computed."""
    one = all_metrics().get(name)
    if one is None or not all(NEEDS[need].met(tables) for need in one.needs):
        return None
    found = one.fn(tables)
    return found if isinstance(found, Each) else None
