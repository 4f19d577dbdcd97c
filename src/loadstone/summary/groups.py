"""The numbers of parts of the requests: of every phase, and of every server, model, turn and length where there are several."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
import polars as pl

from loadstone.checks import Evidence, courses
from loadstone.folder import PhaseLog
from loadstone.metrics import NEEDS, Tables, all_metrics
from loadstone.report import Group, MetricResult, PhaseFacts
from loadstone.summary import at_least
from loadstone.summary.arrivals import arriving, words
from loadstone.summary.measure import measure
from loadstone.summary.outcomes import counts
from loadstone.summary.queue import most

METRICS = (
    "request_latency",
    "time_to_first_token",
    "inter_token_latency",
    "request_latency_from_due",
    "time_to_first_token_from_due",
    "output_token_throughput",
    "request_throughput",
    "error_rate",
)
"""What is told of a part; what counts from due times only where requests have some."""
FROM_DUE = "_from_due"
MOST_TURNS = 8
"""Turns with numbers of their own."""


def phases(table: pl.LazyFrame, evidence: Evidence) -> tuple[PhaseFacts, ...]:
    """Every phase that began, one after the other in memory; the numbers of a lone measured one are those of the run."""
    tables = evidence.tables
    logs = tables.run.phases
    saturated = {course.load.name: course.saturated for course in courses(evidence)}
    origin_ns = tables.start_ns if tables.start_ns is not None else logs[0].start_ns if logs else 0
    found = []
    for log in logs:
        lone = tables.phases == (log,)
        own = tables if lone else Tables.read(table, tables.run, [log.name])
        metrics = (
            {name: evidence.metrics[name] for name in told(own)}
            if lone
            else numbers(own, waits_grew(own, evidence))
        )
        found.append(_phase(log, own, metrics, origin_ns, saturated.get(log.name)))
    return tuple(found)


def _phase(
    log: PhaseLog, own: Tables, metrics: dict[str, MetricResult], origin_ns: int, saturated: bool | None
) -> PhaseFacts:
    load = next((load for load in own.loads if load.name == log.name), None)
    rates = (measure(all_metrics()[name], own).mean for name in ("offered_rate", "completed_rate"))
    offered_rate, completed_rate = rates
    return PhaseFacts(
        name=log.name,
        planned=len(own.requests),
        counts=counts(own.requests),
        metrics=metrics,
        kind=log.kind,
        handover="seamless" if log.seamless else "drained",
        start_s=(log.start_ns - origin_ns) / 1e9,
        stop_s=(log.stop_ns - origin_ns) / 1e9,
        end_s=(log.end_ns - origin_ns) / 1e9,
        offered=int((~own.never_due).sum()),
        sent=int(own.attempted.sum()),
        not_sent=int(own.unsent.sum()),
        offered_rate=offered_rate,
        completed_rate=completed_rate,
        queued_most=None if load is None else most(own),
        saturated=saturated,
        arrivals=None if load is None else words(load, arriving(own)),
    )


def targets(evidence: Evidence) -> tuple[Group, ...]:
    """The measured requests of each server, by its address without secrets; none where there is one server.

    What was never sent and could have gone to any is in none of them. Rates are over the window of the whole, so that they
    add up to its own.
    """
    return _groups("target", evidence.tables.config.endpoint.urls, evidence)


def models(evidence: Evidence) -> tuple[Group, ...]:
    """The measured requests of each model, with rates as those of servers; none where there is one."""
    return _groups("model", evidence.tables.config.endpoint.models, evidence)


def turns(evidence: Evidence) -> tuple[Group, ...]:
    """The measured requests by their place in their conversation, from 0 on; none where no conversation has a second one.

    Those from `MOST_TURNS` on are one group.
    """
    turn = evidence.tables.requests["turn"].fill_null(0).clip(upper_bound=MOST_TURNS).to_numpy()
    found = np.unique(turn)
    if len(found) < 2:
        return ()
    behind = waits_grew(evidence.tables, evidence)
    return tuple(
        _group(f"{number}{'+' if number == MOST_TURNS else ''}", evidence.tables.part(turn == number), behind)
        for number in found.tolist()
    )


def lengths(evidence: Evidence) -> tuple[Group, ...]:
    """The measured requests by the length of their prompt, in tokens: buckets from one power of two to the next.

    None where the longest is not twice as long as the shortest. A length is the server's count, of requests without one that
    planned; who has neither is in no bucket.
    """
    tables = evidence.tables
    told, planned = (tables.column(name) for name in ("input_tokens", "planned_input_tokens"))
    length = told.zip_with(told.is_not_null(), planned)
    shortest, longest = length.min(), length.max()
    if not isinstance(shortest, int) or not isinstance(longest, int) or longest < 2 * max(shortest, 1):
        return ()
    # The exponent of the power of two at or below it; -1 for an empty prompt and -2 for one that is not known.
    bucket = np.frexp(length.fill_null(0).to_numpy())[1] - 1
    bucket = np.where(length.is_null().to_numpy(), -2, bucket)
    behind = waits_grew(tables, evidence)
    return tuple(
        _group(
            "0" if number < 0 else f"{2**number}-{2 ** (number + 1) - 1}",
            tables.part(bucket == number),
            behind,
        )
        for number in np.unique(bucket[bucket > -2]).tolist()
    )


def _groups(column: str, names: Sequence[str], evidence: Evidence) -> tuple[Group, ...]:
    if len(names) < 2:
        return ()
    tables = evidence.tables
    of, behind = tables.requests[column], waits_grew(tables, evidence)
    return tuple(
        _group(name, tables.part((of == number).fill_null(False).to_numpy()), behind)
        for number, name in enumerate(names)
    )


def _group(name: str, own: Tables, behind: Collection[str]) -> Group:
    return Group(
        name=name, planned=len(own.requests), counts=counts(own.requests), metrics=numbers(own, behind)
    )


def numbers(
    own: Tables, behind: Collection[str], names: Collection[str] | None = None
) -> dict[str, MetricResult]:
    """The metrics of a part, all that are told or those with these names; `behind` are the phases in which waits grew."""
    known = all_metrics()
    return at_least.marked({name: measure(known[name], own) for name in names or told(own)}, own, behind)


def waits_grew(tables: Tables, evidence: Evidence) -> tuple[str, ...]:
    """The names of the phases in which waits grew to the end."""
    return at_least.behind(tables, at_least.saturated(evidence))


def told(tables: Tables) -> list[str]:
    """The names of the metrics that are told of a part."""
    timed = NEEDS["rate"].met(tables)
    return [name for name in METRICS if timed or not name.endswith(FROM_DUE)]
