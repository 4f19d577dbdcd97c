"""Whether the load was the one that was meant: not in bursts, not held up by this machine, not mixed with warm-up."""

from __future__ import annotations

import numpy as np
import polars as pl

from loadstone.checks.evidence import Evidence, Verdict, answer
from loadstone.figures import brief, counted
from loadstone.metrics import Tables
from loadstone.report import Check

LOCK_SLOTS = 4
"""Fewer slots start together by chance too often."""
LOCK_WINDOW = 0.05
"""Requests start together when they do within this share of the median latency of each other. By chance a tenth of the
others do then."""
LOCK_SHARE = 0.30
"""Three times what chance gives. On the built-in engine, 4 to 64 slots: 0.98 and more where all answers have one
length, 0.08 to 0.14 where lengths differ by 5 % and more; two cohorts in turn give 0.33 to 0.5."""
LOCK_LEAVES_OUT = 2
"""Rounds at the start, which all slots begin together whatever the server does."""
LOCK_ROUNDS = 3
"""Rounds after these, from which on a lock can be told from its beginning."""
WAITED_SHARE = 0.01
"""Requests held up, or time during which some were, of which more shifts a p99."""


def cohort_lock(evidence: Evidence) -> Check:
    """Whether the slots of a closed loop start their requests together, in cohorts that stay together.

    Answers of one length, decoded in one batch, end in the same step; their slots free, and fill, at the same moment:
    the server sees bursts of prompts and then none, not a mixed load. The number is the share of the other slots that
    start within 5 % of the median latency of a request, on average, the first two rounds left out: a NOTE from 30 % on. Looked
    at are successes: what fails at once starts the next at once, whatever the server decodes.
    """
    tables = evidence.tables
    closed = [load for load in tables.loads if not load.timed and (load.slots or 1) >= LOCK_SLOTS]
    if not closed:
        return answer("cohort_lock", "VALID", None, "%", "only a closed loop of several slots can lock.")
    found = [(_together(tables.of_phases(load.name), load.slots or 1), load.slots) for load in closed]
    share, slots = max(found, key=lambda one: -1.0 if one[0] is None else one[0])
    if share is None:
        return answer(
            "cohort_lock", "VALID", None, "%", "too few requests succeeded for slots to show a pattern."
        )
    if share < LOCK_SHARE:
        return answer("cohort_lock", "VALID", 100 * share, "%", "slots start their requests apart.")
    finding = (
        f"the {slots} requests in flight keep ending and starting together (with each one {100 * share:.3g} % of the others"
        " start): the server gets its prompts in bursts, not spread over time as from independent users."
    )
    advice = "Vary the answers' length (--osl-stddev), or offer a rate (--request-rate)."
    return answer("cohort_lock", "NOTE", 100 * share, "%", finding, advice)


def resource_waits(evidence: Evidence) -> Check:
    """No connection had to wait because this machine had no descriptor or no port left for it.

    DEGRADED when that befell more than 1 % of the requests or some were waiting for more than 1 % of the time; else a NOTE.
    """
    logs = evidence.tables.run.workers
    waits = sum(log.waits for log in logs)
    if not waits:
        return answer("resource_waits", "VALID", 0, "requests", "descriptors and ports sufficed.")
    waited_s = max(log.waited_ns for log in logs) / 1e9
    longest = max(log.waited_ns / log.wall_ns if log.wall_ns else 0.0 for log in logs)
    finding = (
        f"{counted(waits, 'request')} had to wait for a free descriptor or port of this machine, for {brief(waited_s)} s in"
        " all: less was sent than asked."
    )
    grave = waits > WAITED_SHARE * evidence.planned or longest > WAITED_SHARE
    verdict: Verdict = "DEGRADED" if grave else "NOTE"
    advice = "Raise ulimit -n, widen net.ipv4.ip_local_port_range, or lower the load."
    return answer("resource_waits", verdict, waits, "requests", finding, advice)


def warmup_apart(evidence: Evidence) -> Check:
    """Every warm-up request had ended before what it warmed up was measured, so that none of its work is in the numbers.

    DEGRADED when one had not. Where the hand-over was to be seamless, that the last ones were still under way is as it was meant: a NOTE.
    """
    phases = evidence.tables.run.phases
    overlaps_ns = {True: 0, False: 0}
    for number, phase in enumerate(phases):
        if phase.kind == "measured":
            ends_ns = (before.end_ns for before in phases[:number] if before.kind == "warmup")
            overlap_ns = max(ends_ns, default=phase.start_ns) - phase.start_ns
            overlaps_ns[phase.seamless] = max(overlap_ns, overlaps_ns[phase.seamless])
    overlap_ms = max(overlaps_ns.values()) / 1e6
    if not overlap_ms:
        return answer("warmup_apart", "VALID", 0, "ms", "no warm-up request was under way while measuring.")
    finding = f"warm-up requests were under way for {brief(overlap_ms)} ms of the measured phase"
    if not overlaps_ns[False]:
        return answer(
            "warmup_apart", "NOTE", overlap_ms, "ms", f"{finding}, as the seamless hand-over means it."
        )
    return answer(
        "warmup_apart", "DEGRADED", overlap_ms, "ms", f"{finding}.", "See loadstone.log and run again."
    )


def _together(tables: Tables, slots: int) -> float | None:
    """The mean share of the other slots that start together with a request; None with too few that succeeded."""
    flights = tables.requests.select("sent_ns", ended_ns=tables.left_ns).filter(pl.Series(tables.succeeded))
    started = flights.drop_nulls().sort("sent_ns")
    later = started[LOCK_LEAVES_OUT * slots :]
    if len(later) < LOCK_ROUNDS * slots:
        return None
    sent_ns = later["sent_ns"].to_numpy()
    window_ns = round(LOCK_WINDOW * float(np.median(later["ended_ns"].to_numpy() - sent_ns)))
    first = np.searchsorted(sent_ns, sent_ns - window_ns, side="left")
    last = np.searchsorted(sent_ns, sent_ns + window_ns, side="right")
    return float(np.minimum((last - first - 1) / (slots - 1), 1.0).mean())
