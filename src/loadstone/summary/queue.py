"""The queue at the client: requests that were due and not yet sent."""

from __future__ import annotations

import numpy as np
import polars as pl

from loadstone.metrics import Tables
from loadstone.summary.levels import Ints, levels

QUARTERS = np.array([0.5, 0.75, 1.0])
"""The last quarter of the load is held against the one before it."""
LEAST = 1.0
"""Requests more that have to wait, in the mean: what is sent a moment late, one at a time, is no queue ..."""
LEAST_SHARE = 0.1
"""... and this share more of those that waited before: a queue that has come to its length still trembles."""


def waited(tables: Tables) -> tuple[Ints, Ints] | None:
    """When requests were due, and when each stopped waiting, CLOCK_MONOTONIC ns; None where none has a due time of its
    own.

    The latter is `Tables.left_queue_ns`. Phases without due times, and turns that never became due, are left out.
    """
    timed = [load.name for load in tables.loads if load.timed]
    if not timed:
        return None
    went_ns = pl.max_horizontal(pl.col("due_ns"), tables.left_queue_ns)
    waiting = (
        tables.requests.select("phase", "due_ns", went_ns=went_ns)
        .filter(pl.col("phase").cast(pl.String).is_in(timed))
        .drop_nulls()
    )
    return waiting["due_ns"].to_numpy(), waiting["went_ns"].to_numpy()


def most(tables: Tables) -> int | None:
    """The greatest number of requests that waited at once; None without due times."""
    waiting = waited(tables)
    if waiting is None:
        return None
    came_ns, went_ns = waiting
    stayed = went_ns > came_ns
    came_ns, went_ns = np.sort(came_ns[stayed]), np.sort(went_ns[stayed])
    here = np.arange(1, len(came_ns) + 1) - np.searchsorted(went_ns, came_ns, side="right")
    return int(here.max(initial=0))


def growing(tables: Tables) -> bool | None:
    """Whether clearly more requests waited in the last quarter of the load than in the quarter before; None without due
    times.

    The load is the last measured phase with due times, from its start to its stop.
    """
    last = [log for log in tables.phases if _timed(tables, log.name)][-1:]
    waiting = waited(tables.of_phases(*(log.name for log in last))) if last else None
    if waiting is None:
        return None
    (log,) = last
    came_ns, went_ns = waiting
    edges_s = QUARTERS * (log.stop_ns - log.start_ns) / 1e9
    if not edges_s[-1] > 0:
        return False
    before, after = levels(came_ns - log.start_ns, went_ns - log.start_ns, edges_s)
    return bool(after - before >= max(LEAST, LEAST_SHARE * before))


def _timed(tables: Tables, name: str) -> bool:
    return any(load.timed for load in tables.loads if load.name == name)
