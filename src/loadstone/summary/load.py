"""The load that was asked for beside the one that was offered and sent: the account of every request that was planned."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import polars as pl

from loadstone.checks import Evidence, bound, send_lags_ms
from loadstone.metrics import NEEDS, Tables
from loadstone.metrics.instrument import late_ms
from loadstone.plan.rate import passed
from loadstone.plan.schedule import Phase
from loadstone.report import LoadFacts, MetricResult
from loadstone.summary.arrivals import arrivals, arriving
from loadstone.summary.queue import growing, most, waited
from loadstone.summary.waits import growth


def load_facts(evidence: Evidence) -> LoadFacts:
    """The account of the measured phases; every planned request is in one of its numbers (see the check `invariants`)."""
    tables, metrics = evidence.tables, evidence.metrics
    kinds = (tables.attempted, tables.unsent, tables.lost, tables.never_due)
    sent, not_sent, lost, never_due = (int(kind.sum()) for kind in kinds)
    offered = int((~tables.never_due).sum())
    lag_p50_ms, lag_p99_ms, lag_max_ms = _lag_ms(tables)
    by = bound(evidence)
    return LoadFacts(
        arrivals=tuple(arrivals(load, arriving(tables)) for load in tables.loads),
        timed=waited(tables) is not None,
        offered=offered,
        sent=sent,
        not_sent=not_sent,
        lost=lost,
        never_due=never_due,
        late=_whole(metrics, "late_count"),
        queued_at_end=_whole(metrics, "queued_count"),
        queued_most=most(tables),
        queue_growing=growing(tables),
        growth=growth(tables),
        cancelled_as_planned=int(tables.cancelled.sum()),
        asked_rate=asked_rate(tables),
        offered_rate=metrics["offered_rate"].mean,
        sent_rate=metrics["sent_rate"].mean,
        completed_rate=metrics["completed_rate"].mean,
        send_lag_p50_ms=lag_p50_ms,
        send_lag_p99_ms=lag_p99_ms,
        send_lag_max_ms=lag_max_ms,
        bound_by=None if by is None else by.by,
        bound_why=None if by is None else by.why,
    )


def _lag_ms(tables: Tables) -> tuple[float | None, ...]:
    """Median, p99 and greatest of the lags by which the check `send_lag` judges; None where there is none to tell.

    Where all was due at once they are the time it took to send it, which that check leaves to another one.
    """
    if not NEEDS["no cap"].met(tables):
        return None, None, None
    lags_ms = send_lags_ms(tables)
    if not len(lags_ms):
        lags_ms = late_ms(tables)
        lags_ms = lags_ms[np.isfinite(lags_ms)]
    if not len(lags_ms):
        return None, None, None
    return tuple(np.quantile(lags_ms, (0.5, 0.99, 1.0)).tolist())


def _whole(metrics: Mapping[str, MetricResult], name: str) -> int | None:
    """A metric that counts."""
    value = metrics[name].mean
    return None if value is None else int(value)


def asked_rate(tables: Tables) -> float | None:
    """The mean of the rates asked for, each until the last request of its phase was due; None where one has no rate, or
    one of conversations whose turns nobody counted beforehand.
    """
    loads = {load.name: load for load in tables.loads}
    last_ns = dict(tables.requests.group_by("phase").agg(pl.col("due_ns").max()).iter_rows())
    requests = asked_s = 0.0
    for log in tables.phases:
        lasted_s = ((last_ns.get(log.name) or log.start_ns) - log.start_ns) / 1e9
        came_to = _came_to(loads.get(log.name), lasted_s, arriving(tables))
        if came_to is None:
            return None
        requests, asked_s = requests + came_to, asked_s + lasted_s
    return requests / asked_s if asked_s > 0 else None


def _came_to(load: Phase | None, lasted_s: float, what: str) -> float | None:
    """The requests that a phase's rate comes to in that time; None where it has none."""
    if load is None or not load.curve or (what != "requests" and load.pattern != "users"):
        return None
    return passed(load.curve, lasted_s)
