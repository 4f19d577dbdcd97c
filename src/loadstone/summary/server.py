"""What the servers' own pages say of a run, beside what we counted ourselves.

Rows of `server_metrics.parquet` in, facts out. Where pages, or the account of reading them, are missing every number is
null with a reason.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec
import polars as pl

from loadstone.folder import RunLog, ScrapeLog
from loadstone.metrics import Tables, all_metrics
from loadstone.read.outcome import SUCCESSES
from loadstone.report import MetricResult, ServerFacts, ServerLatency, ServerTokens
from loadstone.summary.measure import measure
from loadstone.telemetry.engines import ENGINES
from loadstone.telemetry.facts import LATENCIES, NO_COUNTER, NO_METRIC, facts, unknown
from loadstone.telemetry.pages import Pages
from loadstone.telemetry.series import counted

DAMAGED = "the table of the pages is damaged"
NOT_MEASURED = "nothing was measured"
NOT_OURS = "which of our requests it tells of is not known"
NOT_COUNTED = "no answer of ours has a count of its tokens"
NOT_AROUND = "the page was not read both before the load and after its last answer"


def server_facts(
    folder: Path, table: pl.LazyFrame, tables: Tables, metrics: Mapping[str, MetricResult]
) -> tuple[ServerFacts, ...]:
    """One entry for every page that was to be read, in the order of the run. `metrics` are those of the whole run."""
    run = tables.run
    try:
        pages = Pages.read(folder)
    except (pl.exceptions.PolarsError, OSError):
        return tuple(unknown(log, DAMAGED) for log in run.scrapes)
    known = {log.page for log in run.scrapes}
    logs = [*run.scrapes, *(ScrapeLog(page=page) for page in pages if page not in known)]
    if not tables.phases:
        return tuple(unknown(log, NOT_MEASURED) for log in logs)
    return tuple(_one(log, pages.get(log.page), table, tables, metrics) for log in logs)


def _one(
    log: ScrapeLog,
    pages: Pages | None,
    table: pl.LazyFrame,
    tables: Tables,
    metrics: Mapping[str, MetricResult],
) -> ServerFacts:
    from_ns, to_ns = tables.phases[0].start_ns, max(phase.end_ns for phase in tables.phases)
    found = facts(log, pages, from_ns, to_ns, tables.run.scrape_fault)
    beside = {
        name: _beside(theirs, name, log.serves, tables, metrics)
        for name in LATENCIES
        if (theirs := getattr(found, name)) is not None
    }
    return msgspec.structs.replace(found, tokens=_tokens(found, pages, tables.run, table), **beside)


def _beside(
    theirs: ServerLatency,
    name: str,
    serves: tuple[int, ...],
    tables: Tables,
    metrics: Mapping[str, MetricResult],
) -> ServerLatency:
    """The server's latency with ours, of the answers that those servers gave."""
    if not serves:
        return msgspec.structs.replace(theirs, reason=NOT_OURS)
    ours = metrics[name]
    if len(serves) < len(tables.config.endpoint.urls):
        chosen = tables.requests["target"].is_in(serves).fill_null(False).to_numpy()
        ours = measure(all_metrics()[name], tables.only(chosen))
    if ours.mean is None:
        return msgspec.structs.replace(theirs, reason=ours.reason)
    return msgspec.structs.replace(
        theirs, ours_ms=ours.mean, ours_count=ours.count, apart_ms=ours.mean - theirs.server_ms
    )


def _tokens(found: ServerFacts, pages: Pages | None, run: RunLog, table: pl.LazyFrame) -> ServerTokens | None:
    """The output tokens of the whole load by both counts; None where the server's are not known at all."""
    if pages is None or found.engine is None:
        return None
    from_ns, to_ns = run.phases[0].start_ns, max(phase.end_ns for phase in run.phases)
    more = counted(pages, ENGINES[found.engine].generation_tokens, from_ns, to_ns)
    ours, uncounted = _ours(found.serves, run, table)
    if more is None or not more.covers:
        why = found.reasons.get("generation_tokens")
        why = why if why in (NO_METRIC, NO_COUNTER) else NOT_AROUND
        return ServerTokens(server=None, ours=ours, uncounted=uncounted, reason=why)
    why_not = None if ours is not None else NOT_COUNTED if found.serves else NOT_OURS
    return ServerTokens(server=more.value, ours=ours, uncounted=uncounted, reason=why_not)


def _ours(serves: tuple[int, ...], run: RunLog, table: pl.LazyFrame) -> tuple[int | None, int]:
    """The tokens of the answers that those servers gave, in all phases, and the requests without a count of them.

    None: not one of them has a count, or which they are is not known.
    """
    if not serves:
        return None, 0
    tokens = pl.coalesce("usage_completion_tokens", "output_tokens")
    sent = table.filter(pl.col("sent_ns").is_not_null())
    asked = sent.filter(pl.col("target").is_null() | pl.col("target").is_in(serves))
    unsure = ~pl.col("outcome").is_in(list(SUCCESSES)) | tokens.is_null()
    total, known, requests, uncounted = (
        asked.select(total=tokens.sum(), known=tokens.count(), requests=pl.len(), uncounted=unsure.sum())
        .collect()
        .row(0)
    )
    return int(total) if known or not requests else None, int(uncounted)
