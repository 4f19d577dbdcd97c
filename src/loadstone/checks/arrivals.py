"""Whether what was due was sent, and as it was due: the rate, and the gaps between requests.

A turn counts from the end of the turn before it where that was later than its due time. Where requests wait for a limit of
ours, the client's part is to let none of them wait while a slot is free (`checks.slots`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import polars as pl

from loadstone.checks.client import LOST_SHARE, SEND_LAG_GRAVE_MS
from loadstone.checks.evidence import SEVERITY, Evidence, Verdict, all_at_once, answer, slower, uncapped
from loadstone.checks.slots import slots_filled
from loadstone.figures import brief
from loadstone.metrics import Tables
from loadstone.metrics.instrument import SENT_FIRST
from loadstone.metrics.load import LATE_MS
from loadstone.report import Check
from loadstone.stats import Floats

RATE_KEPT = 0.99
"""Share of the offered rate that a client has to send."""
RATE_SAME = 0.001
"""Two rates that differ by less are the same."""


class Pace(NamedTuple):
    """The requests that were sent, and not again on a new connection, in the order in which they were due."""

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
        """The rate at which they were sent as a share of the rate at which they were due; 1 where they had no rate."""
        return self.due_s / self.sent_s if self.sent_s > 0 and self.due_s > 0 else 1.0


def offered_load(evidence: Evidence) -> Check:
    """The client sent what was due, whatever the server did.

    Of a rate without a cap, INVALID (client-bound) when more than 1 % of the requests due were never sent, or the rate sent
    is below 99 % of the rate at which the same requests were due; DEGRADED when any was never sent. What was due all at once
    has no rate. With a cap it has to keep the slots filled while requests wait. Of a simulation that was cut off nobody knows
    what of the rest had been sent.
    """
    if evidence.tables.run.simulated and evidence.tables.run.cut_off:
        return answer(
            "offered_load", "NOTE", None, "%", "what was sent is lost in part with what came of it."
        )
    uncapped_phases = uncapped(evidence.tables, timed=True)
    found = [check for check in (_sent_as_due(uncapped_phases), slots_filled(evidence.tables)) if check]
    if not found:
        timed = any(load.timed for load in evidence.tables.loads)
        why = "the limit makes requests wait for the server." if timed else "a closed loop offers no rate."
        return answer("offered_load", "VALID", None, "%", why)
    return min(found, key=lambda check: SEVERITY.index(check.verdict))


def arrival_fidelity(evidence: Evidence) -> Check:
    """Requests were sent as far apart as they were due: the rate recorded against the rate planned of the same requests.

    NOTE where the two differ by more than 0.1 %, and the time they took by more than the 5 ms that one late request may
    make. What `offered_load` holds against the client is not held against it again. What was due all at once should be sent
    at once: NOTE where that took more than 5 ms, DEGRADED where it took more than 50 ms and longer than the median answer.
    """
    burst = _at_once(evidence)
    if burst and burst.verdict != "VALID":
        return burst
    tables = uncapped(evidence.tables, timed=True)
    pace = None if tables is None else _pace(tables)
    if pace is None or not pace.gaps or not pace.due_s:
        why = "no two requests with due times and without a limit were sent."
        return burst or answer("arrival_fidelity", "VALID", None, "%", why)
    p50, p99 = np.quantile(np.abs(pace.shifted_ms), (0.5, 0.99))
    finding = (
        f"requests were sent at {100 * pace.kept:.5g} % of the rate at which they were due; gaps between them are off by"
        f" {brief(float(p50))} ms (median) and {brief(float(p99))} ms (p99)."
    )
    differs_ms = abs(pace.sent_s - pace.due_s) * 1e3
    off = abs(1 - pace.kept) > RATE_SAME and differs_ms > LATE_MS * len(evidence.tables.phases)
    verdict: Verdict = "NOTE" if off and offered_load(evidence).verdict == "VALID" else "VALID"
    return answer("arrival_fidelity", verdict, 100 * pace.kept, "%", finding)


def _sent_as_due(tables: Tables | None) -> Check | None:
    """Of phases with due times and without a limit, whether what was due was sent; None where there is none."""
    if tables is None:
        return None
    unsent, due, pace = _unsent(tables), int((~tables.never_due).sum()), _pace(tables)
    # Over a short time a share says little.
    behind = (pace.sent_s - pace.due_s) * 1e3 > SEND_LAG_GRAVE_MS
    kept = pace.kept if behind else 1.0
    if not unsent and kept >= RATE_KEPT:
        return answer("offered_load", "VALID", 100 * kept, "%", "every request that was due was sent.")
    grave = unsent > LOST_SHARE * due or kept < RATE_KEPT
    at_the_rate = f"sent at {100 * kept:.3g} % of the rate asked and " if pace.due_s else ""
    finding = f"client-bound: it {at_the_rate}left {unsent} of {due} due requests unsent{_ceiling(tables) if grave else ''}."
    advice = f"{slower(tables)}, or give the client more --workers and cores of its own."
    return answer("offered_load", "INVALID" if grave else "DEGRADED", 100 * kept, "%", finding, advice)


def _at_once(evidence: Evidence) -> Check | None:
    """How long it took to send what was due all at once; None where nothing was, or not two of it were sent."""
    tables = uncapped(evidence.tables, timed=True)
    phases = () if tables is None else tables.by_phase
    spans = [span for phase in phases if (span := _sent_over(phase.only(all_at_once(phase)))).gaps]
    if not spans:
        return None
    took_ms, latency = max(span.s for span in spans) * 1e3, evidence.p50("request_latency")
    if took_ms <= LATE_MS:
        finding = f"all requests were due at once, and sent within {brief(took_ms)} ms."
        return answer("arrival_fidelity", "VALID", took_ms, "ms", finding)
    finding = f"not at once: it took {brief(took_ms)} ms to send them all"
    if latency is None or took_ms <= max(SEND_LAG_GRAVE_MS, latency):
        return answer("arrival_fidelity", "NOTE", took_ms, "ms", f"{finding}.")
    finding += f", longer than an answer takes (median {brief(latency)} ms)."
    advice = "Send fewer requests at once, or give the client more --workers and cores of its own."
    return answer("arrival_fidelity", "DEGRADED", took_ms, "ms", finding, advice)


class _Sent(NamedTuple):
    gaps: int
    s: float


def _sent_over(tables: Tables) -> _Sent:
    """The gaps between the requests that were sent, and over how many seconds."""
    sent_ns = tables.requests.select(SENT_FIRST).to_series().drop_nulls().to_numpy()
    return _Sent(len(sent_ns) - 1, float(np.ptp(sent_ns)) / 1e9) if len(sent_ns) > 1 else _Sent(0, 0.0)


def _ceiling(tables: Tables) -> str:
    """How far the client got."""
    spans = [_sent_over(phase) for phase in tables.by_phase]
    gaps, over_s = sum(span.gaps for span in spans), sum(span.s for span in spans)
    return f"; it got no further than {brief(gaps / over_s)} requests/s" if over_s > 0 else ""


def _unsent(tables: Tables) -> int:
    """Requests that were due and never sent, though their turn had come before the load stopped."""
    moments = tables.requests.select("due_ns", tables.ready_ns, stop_ns=tables.of_phase("stop_ns"))
    had_turn = (pl.col("ready_ns") <= pl.max_horizontal("due_ns", "stop_ns")).fill_null(False)
    return int((moments.select(had_turn).to_series().to_numpy() & ~tables.attempted).sum())


def _pace(tables: Tables) -> Pace:
    """The pace of every phase by itself, put together; without what was due all at once, which has none."""
    paces = [_pace_of(phase) for phase in tables.by_phase]
    return Pace(
        gaps=sum(pace.gaps for pace in paces),
        due_s=sum(pace.due_s for pace in paces),
        sent_s=sum(pace.sent_s for pace in paces),
        shifted_ms=np.concatenate([np.empty(0), *(pace.shifted_ms for pace in paces)]),
    )


def _pace_of(tables: Tables) -> Pace:
    moments = tables.requests.select(tables.ready_ns, SENT_FIRST).filter(pl.Series(~all_at_once(tables)))
    sent = moments.drop_nulls().sort("ready_ns")
    if len(sent) < 2:
        return Pace(0, 0.0, 0.0, np.empty(0))
    due_ns, sent_ns = sent.select(pl.all().max() - pl.all().min()).row(0)
    late_ms = (sent["sent_ns"] - sent["ready_ns"]).to_numpy() / 1e6
    return Pace(len(sent) - 1, due_ns / 1e9, sent_ns / 1e9, np.diff(late_ms))
