"""What was done in equal parts of the window, in time order: what the interval of a rate is made from."""

from __future__ import annotations

import numpy as np

from loadstone.metrics._tables import Tables
from loadstone.stats import Floats

MOST = 512
"""Parts of a window: more would tell no more of how the rate goes up and down."""
PER_PART = 4
"""Requests that end in a part, in the mean, at least."""


def evenly(tables: Tables, amounts: Floats) -> Floats:
    """What was done a second in each of the equal parts of the window.

    `amounts` says of every request what it brought, NaN or 0 where nothing; it is put at the last moment at which
    anything of it came. The mean of the parts is the sum of the amounts / window.
    """
    at_ns, lasted_ns = _moments_ns(tables)
    return in_parts(at_ns, np.where(np.isfinite(at_ns), amounts, 0.0), lasted_ns) * 1e9


def in_parts(at: Floats, amounts: Floats, lasted: float) -> Floats:
    """What was done in a unit of time in each of the equal parts of `lasted`: `amounts` above 0, each at its moment."""
    known = amounts > 0
    parts = min(MOST, int(known.sum()) // PER_PART)
    if not parts or not lasted:
        return np.empty(0)
    which = np.minimum(at[known] * parts / lasted, parts - 1).astype(np.int64)
    return np.asarray(np.bincount(which, amounts[known], parts) * parts / lasted, np.float64)


def _moments_ns(tables: Tables) -> tuple[Floats, int]:
    """When anything of each request last came, since the begin of the window, and how long that is.

    The windows of several stretches of time follow each other.
    """
    heard_ns = tables.heard_ns.cast(float).fill_null(float("nan")).to_numpy()
    phase = tables.requests["phase"]
    at_ns, before_ns = np.full(len(heard_ns), np.nan), 0
    for stretch in tables.stretches:
        if stretch.window_ns is None:
            continue
        first_ns, last_ns = stretch.window_ns
        own = phase.is_in([log.name for log in stretch.phases]).to_numpy()
        at_ns[own] = np.clip(heard_ns[own], first_ns, last_ns) - first_ns + before_ns
        before_ns += last_ns - first_ns
    return at_ns, before_ns
