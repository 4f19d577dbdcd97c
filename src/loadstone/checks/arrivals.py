"""Whether what was due was sent, and as it was due: the rate, and the gaps between requests.

Only phases in which nothing but the client can hold a request up: due times of their own, and no limit. A turn counts from
the end of the turn before it where that was later than its due time.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import polars as pl

from loadstone.checks.client import LOST_SHARE, SEND_LAG_GRAVE_MS
from loadstone.checks.evidence import Evidence, answer, uncapped
from loadstone.figures import brief
from loadstone.metrics import Tables
from loadstone.metrics.load import LATE_MS
from loadstone.report import Check
from loadstone.stats import Floats

RATE_KEPT = 0.99
"""Share of the offered rate that a client has to send."""
RATE_SAME = 0.001
"""Two rates that differ by less are the same."""


class Pace(NamedTuple):
    """The requests that were sent, in the order in which they were due."""

    gaps: int
    """Times between two of them."""
    due_s: float
    """Over which they were due; of several phases the sum of theirs."""
    sent_s: float
    """Over which they were sent."""
    shifted_ms: Floats
    """For every gap by how much it was longer or shorter than planned."""

    @property
    def kept(self) -> float:
        """The rate at which they were sent as a share of the rate at which they were due."""
        return self.due_s / self.sent_s if self.sent_s > 0 else 1.0


def offered_load(evidence: Evidence) -> Check:
    """The client sent what was due, whatever the server did. Only a rate without a cap asks that of it.

    INVALID (client-bound) when more than 1 % of the requests due were never sent, or the rate sent is below
    99 % of the rate at which the same requests were due; DEGRADED when any was never sent.
    """
    tables = uncapped(evidence.tables, timed=True)
    if tables is None:
        capped = evidence.tables.has_cap
        why = "a cap makes requests wait for the server." if capped else "a closed loop offers no rate."
        return answer("offered_load", "VALID", None, "%", why)
    unsent, due, pace = _unsent(tables), int((~tables.never_due).sum()), _pace(tables)
    # Over a short time a share says little.
    behind = (pace.sent_s - pace.due_s) * 1e3 > SEND_LAG_GRAVE_MS
    kept = pace.kept if behind else 1.0
    if not unsent and kept >= RATE_KEPT:
        return answer("offered_load", "VALID", 100 * kept, "%", "every request that was due was sent.")
    grave = unsent > LOST_SHARE * due or kept < RATE_KEPT
    finding = (
        f"client-bound: it sent at {100 * kept:.3g} % of the rate asked and left {unsent} of {due} due requests"
        f" unsent{_ceiling(pace) if grave and behind else ''}."
    )
    advice = "Lower --request-rate, or give the client more --workers and cores of its own."
    return answer("offered_load", "INVALID" if grave else "DEGRADED", 100 * kept, "%", finding, advice)


def arrival_fidelity(evidence: Evidence) -> Check:
    """Requests were sent as far apart as they were due: the rate recorded against the rate planned of the same requests.

    NOTE where the two differ by more than 0.1 %, and the time they took by more than the 5 ms that one late request may
    make. What `offered_load` holds against the client is not held against it again.
    """
    tables = uncapped(evidence.tables, timed=True)
    pace = None if tables is None else _pace(tables)
    if tables is None or pace is None or not pace.gaps:
        why = "no two requests with due times and without a limit were sent."
        return answer("arrival_fidelity", "VALID", None, "%", why)
    if not pace.due_s:
        why = "all requests were due at one moment; send_lag says how long it took to send them."
        return answer("arrival_fidelity", "VALID", None, "%", why)
    p50, p99 = np.quantile(np.abs(pace.shifted_ms), (0.5, 0.99))
    finding = (
        f"requests were sent at {100 * pace.kept:.5g} % of the rate at which they were due; gaps between them are off by"
        f" {brief(float(p50))} ms (median) and {brief(float(p99))} ms (p99)."
    )
    off = abs(1 - pace.kept) > RATE_SAME and abs(pace.sent_s - pace.due_s) * 1e3 > LATE_MS * len(
        tables.phases
    )
    judged = offered_load(evidence).verdict != "VALID"
    return answer(
        "arrival_fidelity", "NOTE" if off and not judged else "VALID", 100 * pace.kept, "%", finding
    )


def _ceiling(pace: Pace) -> str:
    """How far the client got."""
    return f"; it got no further than {brief(pace.gaps / pace.sent_s)} requests/s" if pace.sent_s > 0 else ""


def _unsent(tables: Tables) -> int:
    """Requests that were due and never sent, though their turn had come before the load stopped."""
    moments = tables.requests.select("due_ns", tables.ready_ns, stop_ns=tables.of_phase("stop_ns"))
    had_turn = (pl.col("ready_ns") <= pl.max_horizontal("due_ns", "stop_ns")).fill_null(False)
    return int((moments.select(had_turn).to_series().to_numpy() & ~tables.attempted).sum())


def _pace(tables: Tables) -> Pace:
    """The pace of every phase by itself, put together."""
    paces = [_pace_of(tables.of_phases(log.name)) for log in tables.phases]
    return Pace(
        gaps=sum(pace.gaps for pace in paces),
        due_s=sum(pace.due_s for pace in paces),
        sent_s=sum(pace.sent_s for pace in paces),
        shifted_ms=np.concatenate([np.empty(0), *(pace.shifted_ms for pace in paces)]),
    )


def _pace_of(tables: Tables) -> Pace:
    sent = tables.requests.select(tables.ready_ns, "sent_ns").drop_nulls().sort("ready_ns")
    if len(sent) < 2:
        return Pace(0, 0.0, 0.0, np.empty(0))
    due_ns, sent_ns = sent.select(pl.all().max() - pl.all().min()).row(0)
    late_ms = (sent["sent_ns"] - sent["ready_ns"]).to_numpy() / 1e6
    return Pace(len(sent) - 1, due_ns / 1e9, sent_ns / 1e9, np.diff(late_ms))
