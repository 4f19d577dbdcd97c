"""Whether the server was still warming up while it was measured: the first requests slower than all that followed."""

from __future__ import annotations

import numpy as np
import polars as pl

from loadstone.checks.evidence import Evidence, Verdict, answer, even
from loadstone.checks.load import LOCK_LEAVES_OUT
from loadstone.figures import brief
from loadstone.metrics import Tables
from loadstone.metrics.load import LATE_MS
from loadstone.plan.schedule import Phase
from loadstone.report import Check
from loadstone.stats import Floats

NAME = "warm_up_leak"
PARTS = 20
"""Equal parts, whose medians have little in common and few outliers, however single latencies are distributed."""
WARM = (1, 2, 3, 5)
"""So many of the first parts are held against the others."""
APART = 3.0
"""By how many standard errors of their difference the two means of medians differ; as few of a few parts do by chance."""
LEAST = 10
"""Requests a part: fewer have no median to speak of."""
SLOWER = 1.2
"""The first parts' mean of medians, as a multiple of the others', from which on it matters."""
LEAST_MS = LATE_MS
"""And by more than this: a server that compiles, loads or fills something takes longer, a client that begins does not."""
SHIFTED_PERCENT = 5.0
"""By how much the mean is too high with the first parts in it, from which on the run is worse than the server."""


def warm_up_leak(evidence: Evidence) -> Check:
    """The first measured requests were answered as fast as the rest: the warm-up had ended before the measuring began.

    In the first measured phase, where its load is the same throughout: successes in the order of sending, in 20 equal parts.
    A NOTE when in the first parts (1, 2, 3 or 5 of them) the median time to first token (latency without streaming) is on
    average a fifth and 5 ms above that in the others, by three standard errors and above that of each; DEGRADED when the mean is then 5 % above what it is
    without them. Left out are the first two rounds of a closed loop, whose prompts come all at once. One slow first answer is
    `cold_start`'s.
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
    medians = np.array([np.median(part) for part in parts])
    warm = max((first for first in WARM if _slower(medians, first)), default=0)
    if not warm:
        return answer(NAME, "VALID", None, "%", "the first requests were as fast as the rest.")
    rest = float(np.concatenate(parts[warm:]).mean())
    more = 100 * (float(np.concatenate(parts).mean()) / rest - 1)
    what = "first tokens of" if phase.streaming else "answers to"
    finding = (
        f"the {what} the first {sum(map(len, parts[:warm])):,} requests took {brief(float(medians[:warm].mean()))} ms (median),"
        f" those of the rest {brief(float(medians[warm:].mean()))} ms: the server was still warming up, and the mean is"
        f" {brief(more)} % too high."
    )
    verdict: Verdict = "DEGRADED" if more >= SHIFTED_PERCENT else "NOTE"
    advice = "Warm up for longer: --warmup-duration, or --warmup-request-count."
    return answer(NAME, verdict, more, "%", finding, advice)


def _slower(medians: Floats, first: int) -> bool:
    """Whether the first parts are slower than the others, by more than chance and by as much as matters."""
    warm, rest = medians[:first], medians[first:]
    error = float(rest.std(ddof=1)) * (1 / len(warm) + 1 / len(rest)) ** 0.5
    more = float(warm.mean() - rest.mean())
    stands_out = more > APART * error and float(warm.mean()) > float(
        rest.max()
    )  # a queue may be as slow once later on
    return stands_out and more > LEAST_MS and float(warm.mean()) > SLOWER * float(rest.mean())


def _parts(tables: Tables, load: Phase) -> list[Floats] | None:
    """The latencies of the successes in 20 equal parts in the order of sending; None of too few."""
    end = "first_ns" if tables.streaming else "done_ns"
    rows = tables.requests.select("sent_ns", ms=(pl.col(end) - pl.col("sent_ns")) / 1e6)
    kept = rows.filter(pl.Series(tables.succeeded)).drop_nulls().sort("sent_ns")
    opening = 0 if load.timed else LOCK_LEAVES_OUT * (load.slots or 1)
    taken_ms = kept["ms"].to_numpy()[opening:]
    return np.array_split(taken_ms, PARTS) if len(taken_ms) >= PARTS * LEAST else None
