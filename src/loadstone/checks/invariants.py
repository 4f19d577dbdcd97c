"""What holds in every run whatever the server does: sums that add up, moments in their order.

One that does not hold is a defect of loadstone, or of the run's files, and no number of the report can be trusted. It is said
in the certificate and does not stop the report, so that whoever meets it can see what else there is.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import polars as pl
from numpy.typing import NDArray

from loadstone.checks.evidence import Evidence, answer
from loadstone.figures import counted
from loadstone.metrics import Tables
from loadstone.metrics.http_phases import residual_ns
from loadstone.read.outcome import OUTCOMES
from loadstone.report import Check

NAME = "invariants"
ADVICE = "This is a defect of loadstone, or a file of the run was changed; please report it with run.json."


def outcomes_sum_to_planned(tables: Tables) -> int:
    """Planned requests that have no outcome, or have one too many."""
    known = int(tables.requests["outcome"].is_in(list(OUTCOMES)).sum())
    return abs(sum(log.planned for log in tables.phases) - known)


def each_request_is_one_of(tables: Tables) -> int:
    """Requests that are not just one of sent, not sent, lost and never due: then sent + not sent + lost = offered."""
    kinds = (tables.attempted, tables.unsent, tables.lost, tables.never_due)
    return int((np.sum(kinds, axis=0) != 1).sum())


def moments_in_order(tables: Tables) -> int:
    """Successes for which sent < first token <= last token <= end does not hold: 0 < TTFT <= latency."""
    before = (pl.col("sent_ns") < pl.col("first_ns")).fill_null(True)
    within = (pl.col("first_ns") <= pl.col("last_ns")).fill_null(True)
    after = (pl.col("last_ns") <= pl.col("done_ns")).fill_null(True)
    return _count(tables, before & within & after, tables.succeeded)


def gaps_sum_to_latency(tables: Tables) -> int:
    """Streams whose TTFT and gaps between instants do not add up to their latency, in ns.

    Of several choices the gaps lie side by side, and have no such sum.
    """
    shape = tables.shape
    added = pl.col("first_ns") - pl.col("sent_ns") + pl.Series(shape.span_ns)
    held = (added == pl.col("last_ns") - pl.col("sent_ns")).fill_null(True)
    return _count(tables, held, shape.streams == 1)


def http_phases_sum_to_total(tables: Tables) -> int:
    """Requests whose HTTP phases do not add up to the time from due to done, in ns."""
    return int((residual_ns(tables) > 0).sum())


RULES: dict[str, Callable[[Tables], int]] = {
    "outcomes sum to planned": outcomes_sum_to_planned,
    "sent + not sent + lost = offered": each_request_is_one_of,
    "0 < TTFT <= latency": moments_in_order,
    "TTFT + gaps = latency": gaps_sum_to_latency,
    "HTTP phases sum to the total": http_phases_sum_to_total,
}
"""What has to hold, and for how many requests it does not."""


def invariants(evidence: Evidence) -> Check:
    """Sums that add up and moments in their order; INVALID where one is not."""
    broken = {rule: count for rule, find in RULES.items() if (count := find(evidence.tables))}
    if not broken:
        return answer(NAME, "VALID", 0, "requests", f"every sum holds: {'; '.join(RULES)}.")
    told = "; ".join(f"{rule}, for {counted(count, 'request')}" for rule, count in broken.items())
    return answer(NAME, "INVALID", sum(broken.values()), "requests", f"does not hold: {told}.", ADVICE)


def _count(tables: Tables, held: pl.Expr, of: NDArray[np.bool_]) -> int:
    """Those of the requests for which it does not hold."""
    return int((~tables.requests.select(held).to_series().to_numpy() & of).sum())
