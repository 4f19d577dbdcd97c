"""What the servers' own pages say of a run, beside what we counted ourselves.

Rows of `server_metrics.parquet` in, facts out. Where pages, or the account of reading them, are missing every number is
null with a reason.
"""

from __future__ import annotations

from pathlib import Path

import msgspec
import polars as pl

from loadstone.folder import RunLog, ScrapeLog
from loadstone.metrics import Tables
from loadstone.read.outcome import SUCCESSES
from loadstone.report import ServerFacts, ServerTokens
from loadstone.telemetry.engines import ENGINES
from loadstone.telemetry.facts import NO_METRIC, counted, facts
from loadstone.telemetry.pages import Pages

DAMAGED = "the table of the pages is damaged"
NOT_MEASURED = "nothing was measured"
NOT_OURS = "which of our requests it tells of is not known"
NOT_AROUND = "the page was not read both before the load and after its last answer"


def server_facts(folder: Path, table: pl.LazyFrame, tables: Tables) -> tuple[ServerFacts, ...]:
    """One entry for every page that was to be read, in the order of the run."""
    run = tables.run
    try:
        pages = Pages.read(folder)
    except (pl.exceptions.PolarsError, OSError):
        return tuple(_unknown(log, DAMAGED) for log in run.scrapes)
    known = {log.page for log in run.scrapes}
    logs = [*run.scrapes, *(ScrapeLog(page=page) for page in pages if page not in known)]
    return tuple(_one(log, pages.get(log.page), run, table, tables) for log in logs)


def _unknown(log: ScrapeLog, why: str) -> ServerFacts:
    return ServerFacts(page=log.page, serves=log.serves, reasons={"scrapes": why})


def _one(
    log: ScrapeLog, pages: Pages | None, run: RunLog, table: pl.LazyFrame, tables: Tables
) -> ServerFacts:
    if pages is None and run.scrape_fault:
        return _unknown(log, run.scrape_fault)
    if not tables.phases:
        return _unknown(log, NOT_MEASURED)
    from_ns, to_ns = tables.phases[0].start_ns, max(phase.end_ns for phase in tables.phases)
    found = facts(log, pages, from_ns, to_ns)
    if pages is not None and not log.scrapes:  # main died before it was told
        found = msgspec.structs.replace(found, failed=None)
    return msgspec.structs.replace(found, tokens=_tokens(found, pages, run, table))


def _tokens(found: ServerFacts, pages: Pages | None, run: RunLog, table: pl.LazyFrame) -> ServerTokens | None:
    """The output tokens of the whole load by both counts; None where the server's are not known at all."""
    if pages is None or found.engine is None:
        return None
    from_ns, to_ns = run.phases[0].start_ns, max(phase.end_ns for phase in run.phases)
    more = counted(pages, ENGINES[found.engine].generation_tokens, from_ns, to_ns)
    ours, uncounted = _ours(found.serves, run, table)
    if more is None or not more.covers:
        why = NO_METRIC if found.reasons.get("generation_tokens") == NO_METRIC else NOT_AROUND
        return ServerTokens(server=None, ours=ours, uncounted=uncounted, reason=why)
    why_not = NOT_OURS if ours is None else None
    return ServerTokens(server=more.value, ours=ours, uncounted=uncounted, reason=why_not)


def _ours(serves: tuple[int, ...], run: RunLog, table: pl.LazyFrame) -> tuple[int | None, int]:
    """The tokens of the answers that those servers gave, in all phases, and the requests without a count of them."""
    if not serves:
        return None, 0
    tokens = pl.coalesce("usage_completion_tokens", "output_tokens")
    sent = table.filter(pl.col("sent_ns").is_not_null())
    asked = sent.filter(pl.col("target").is_null() | pl.col("target").is_in(serves))
    unsure = ~pl.col("outcome").is_in(list(SUCCESSES)) | tokens.is_null()
    total, uncounted = asked.select(tokens.sum(), unsure.sum()).collect().row(0)
    return int(total), int(uncounted)
