"""Where percentiles with the requests cut off are lower bounds.

Kaplan and Meier take it that a request cut off would have gone on like others that had lasted as long. Where waits grow it
would not: who still waited at the end came late, to a longer queue than all before.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from msgspec.structs import replace

from loadstone.checks import Evidence, courses
from loadstone.metrics import Tables, all_metrics, capped
from loadstone.report import MetricResult
from loadstone.summary.queue import growing

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
    long as all such requests do.
    """
    waits_grew = {True: _broken_off(tables, behind), False: _broken_off(tables, _uncapped(tables, behind))}
    known = all_metrics()
    return {
        name: replace(found, with_censored_at_least=True)
        if found.with_censored is not None and waits_grew[not FROM_DUE.isdisjoint(known[name].needs)]
        else found
        for name, found in metrics.items()
    }


def _uncapped(tables: Tables, phases: Collection[str]) -> list[str]:
    """Those of the phases in which nothing of ours kept requests from the server."""
    return [load.name for load in tables.loads if load.name in phases and not capped(load)]


def _broken_off(tables: Tables, phases: Collection[str]) -> bool:
    """Whether the end of one of these phases cut requests off, or left them unsent."""
    own = tables.of_phases(*phases)
    return bool((own.censored & ~own.cancelled | own.unsent).any())
