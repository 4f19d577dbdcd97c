"""Where percentiles with the requests cut off are lower bounds.

Kaplan and Meier take it that a request cut off would have gone on like others that had lasted as long. Where waits grow it
would not: who still waited at the end came late, to a longer queue than all before.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from msgspec.structs import replace

from loadstone.checks import Evidence, courses
from loadstone.metrics import Tables, all_metrics, capped
from loadstone.report import Interval, MetricResult
from loadstone.summary.queue import growing

_NO_MEAN = Interval(
    low=None,
    high=None,
    reason="waits grew to the end of the load, so there is no mean that they would keep to.",
)
HOLD_THE_WAIT = frozenset({"request_latency", "time_to_first_token", "time_to_first_output_token"})
"""What has the wait at the server in it, though it counts from sending."""
FROM_DUE = frozenset({"rate", "cap"})
"""What a metric needs that counts from due times."""


def saturated(evidence: Evidence) -> frozenset[str]:
    """The names of the phases that were saturated."""
    return frozenset(course.load.name for course in courses(evidence) if course.saturated)


def behind(tables: Tables, saturated: Collection[str]) -> tuple[str, ...]:
    """The names of the phases in which waits grew to the end: those `saturated`, and those whose queue was growing."""
    return tuple(
        log.name
        for log, own in zip(tables.phases, tables.by_phase, strict=True)
        if log.name in saturated or growing(own)
    )


def marked(
    metrics: Mapping[str, MetricResult], tables: Tables, behind: Collection[str]
) -> dict[str, MetricResult]:
    """The same metrics of `tables`, those marked whose percentiles with the requests cut off are lower bounds.

    They are where the end of a phase that was `behind` cut requests off: of what counts from due times; of what counts from
    sending only where no limit of ours kept the queue from the server. What a time limit ended, or we as asked, lasted as
    long as all such requests do. And the mean of a wait that grew has no interval: another run would have another one for as
    long as it lasts.
    """
    grown = {True: bool(behind), False: bool(_uncapped(tables, behind))}
    waits_grew = {True: _broken_off(tables, behind), False: _broken_off(tables, _uncapped(tables, behind))}
    known = all_metrics()
    marked = dict(metrics)
    for name, found in metrics.items():
        due = not FROM_DUE.isdisjoint(known[name].needs)
        if found.with_censored is not None and waits_grew[due]:
            found = replace(found, with_censored_at_least=True)
        if grown[due] and (due or name in HOLD_THE_WAIT) and "mean" in found.intervals:
            found = replace(found, intervals={**found.intervals, "mean": _NO_MEAN})
        marked[name] = found
    return marked


def _uncapped(tables: Tables, phases: Collection[str]) -> list[str]:
    """Those of the phases in which nothing of ours kept requests from the server."""
    return [load.name for load in tables.loads if load.name in phases and not capped(load)]


def _broken_off(tables: Tables, phases: Collection[str]) -> bool:
    """Whether the end of one of these phases cut requests off, or left them unsent."""
    own = tables.of_phases(*phases)
    return bool((own.censored & ~own.cancelled | own.unsent).any())
