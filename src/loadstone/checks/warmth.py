"""Whether the server was still warming up while it was measured: the first requests slower than all that followed."""

from __future__ import annotations

import numpy as np
import polars as pl

from loadstone.checks.evidence import Evidence, Verdict, answer, even
from loadstone.checks.load import LOCK_LEAVES_OUT
from loadstone.figures import brief
from loadstone.metrics import Tables
from loadstone.plan.schedule import Phase
from loadstone.report import Check
from loadstone.stats import Floats

NAME = "warm_up_leak"
PARTS = 20
"""Of requests that are alike, the first twentieth is the slowest of all by chance in one run of twenty, whatever the
distribution and however neighbours depend on each other."""
LEAST = 10
"""Requests a part: fewer have no median to speak of."""
SLOWER = 1.2
"""The first part's median, as a multiple of the slowest other one's, from which on it is not chance."""
SHIFTED_PERCENT = 5.0
"""By how much the mean is too high with the first part in it, from which on the run is worse than the server."""


def warm_up_leak(evidence: Evidence) -> Check:
    """The first measured requests were answered as fast as the rest: the warm-up had ended before the measuring began.

    In the first measured phase, where its load is the same throughout: successes in the order of sending, in 20 equal parts.
    A NOTE when the first part's median time to first token (latency without streaming) is above that of every
    other part by a fifth; DEGRADED when the mean is then 5 % above what it is without that part. Left out are the first two
    rounds of a closed loop, whose prompts come all at once. One slow first answer is `cold_start`'s.
    """
    phase = next(iter(evidence.tables.by_phase), None)
    load = next((load for load in evidence.tables.loads), None)
    if phase is None or load is None or not even(load):
        return answer(
            NAME, "VALID", None, "%", "the load changes with time, and latencies may change with it."
        )
    parts = _parts(phase, load)
    if parts is None:
        return answer(NAME, "VALID", None, "%", f"fewer than {PARTS * LEAST} answers do not show a warm-up.")
    medians = [float(np.median(part)) for part in parts]
    first, slowest = medians[0], max(medians[1:])
    rest = float(np.concatenate(parts[1:]).mean())
    more = 100 * (float(np.concatenate(parts).mean()) / rest - 1) if rest > 0 else 0.0
    if first <= SLOWER * slowest:
        return answer(NAME, "VALID", more, "%", "the first requests were as fast as the rest.")
    what = "first tokens of" if phase.streaming else "answers to"
    finding = (
        f"the {what} the first {len(parts[0]):,} requests took {brief(first)} ms (median), those of no later twentieth more"
        f" than {brief(slowest)} ms: the server was still warming up, and the mean is {brief(more)} % too high."
    )
    verdict: Verdict = "DEGRADED" if more >= SHIFTED_PERCENT else "NOTE"
    advice = "Warm up for longer: --warmup-duration, or --warmup-request-count."
    return answer(NAME, verdict, more, "%", finding, advice)


def _parts(tables: Tables, load: Phase) -> list[Floats] | None:
    """The latencies of the successes in 20 equal parts in the order of sending; None of too few."""
    end = "first_ns" if tables.streaming else "done_ns"
    rows = tables.requests.select("sent_ns", ms=(pl.col(end) - pl.col("sent_ns")) / 1e6)
    kept = rows.filter(pl.Series(tables.succeeded)).drop_nulls().sort("sent_ns")
    opening = 0 if load.timed else LOCK_LEAVES_OUT * (load.slots or 1)
    taken_ms = kept["ms"].to_numpy()[opening:]
    return np.array_split(taken_ms, PARTS) if len(taken_ms) >= PARTS * LEAST else None
