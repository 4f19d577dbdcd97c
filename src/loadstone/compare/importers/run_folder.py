"""A run's folder: `report.json` for what was asked and found, `requests.parquet` for every request."""

from __future__ import annotations

from pathlib import Path

import msgspec
import numpy as np
import polars as pl

from loadstone import folder as layout
from loadstone.compare.importers import report_json
from loadstone.compare.importers._document import UNREADABLE, Document, content, wrong
from loadstone.compare.importers._plan import prompts
from loadstone.compare.importers._sound import sound
from loadstone.compare.sides import Floats, Gaps, Ints, Requests, Run
from loadstone.errors import LoadstoneError, UsageError
from loadstone.estimate.rates import Paced
from loadstone.folder import RunLog, read_run
from loadstone.metrics import Tables, _streams, per_request
from loadstone.metrics.goodput import met

POOLED = "inter_token_latency"
MOST_GAPS = 10_000_000
"""Gaps that are looked at."""
OF_ONE = ("time_to_first_token", "time_per_output_token", "request_latency", "request_latency_from_due")
"""Metrics with one value a request."""


def run(path: Path) -> Run:
    """The run. Raises `UsageError` when the folder lacks something or holds what is damaged."""
    for name in (layout.REPORT, layout.REQUESTS):
        if not (path / name).is_file():
            again = f"`loadstone report {path}` makes it from what was recorded"
            raise UsageError(f"{path}: holds no {name}; {again}, when the run has ended.")
    told = content(path / layout.REPORT)
    try:
        document = Document((msgspec.json.decode(told),), lines=False)
        found = report_json.run(str(path), document)
        tables = Tables.read(pl.scan_parquet(path / layout.REQUESTS, glob=False), read_run(path))
        return sound(found._replace(requests=_with_prompts(requests(tables), path, tables.run)))
    except (msgspec.DecodeError, pl.exceptions.PolarsError, OSError, LoadstoneError) as error:
        raise UsageError(
            f"{path}: a file of the run is damaged or of another version: {str(error).rstrip('.')}."
        ) from None
    except UNREADABLE as error:
        raise UsageError(
            f"{path}: a file of the run is damaged or of another version: {wrong(error)}."
        ) from None


def _with_prompts(found: Requests | None, path: Path, log: RunLog) -> Requests | None:
    """The same with what each was sent, and rows counted from the first measured one: how long the warm-up was is no matter."""
    if found is None or found.keys is None:
        return found
    first = min((phase.first_row for phase in log.phases if phase.kind == "measured"), default=0)
    return found._replace(keys=found.keys - first, prompts=prompts(path / layout.PLAN, found.keys))


def requests(tables: Tables) -> Requests | None:
    """The requests that were sent, in the order of sending; None when none was."""
    sent = tables.number("sent_ns")
    order = np.argsort(sent, kind="stable")
    order = order[np.isfinite(sent[order])]
    windows = sorted(window for part in tables.stretches if (window := part.window_ns) is not None)
    if not len(order) or not windows:
        return None
    shape = tables.shape
    later = np.where(shape.instants > shape.streams, shape.tokens - shape.first_tokens, 0.0)
    judged = tables.attempted & ~tables.cancelled
    return Requests(
        sent_s=_within(windows, sent[order]),
        succeeded=tables.succeeded[order],
        failed=tables.failed[order],
        latencies={name: _of_successes(name, tables)[order] for name in OF_ONE},
        output_tokens=tables.number("output_tokens")[order],
        input_tokens=tables.number("input_tokens")[order],
        pooled={POOLED: _gaps(tables, order)},
        pooled_sums={POOLED: ((shape.span_ns / 1e6 * (later > 0))[order], later[order])},
        good=np.where(judged, met(tables), np.nan)[order] if tables.goodput else None,
        keys=tables.number("request")[order].astype(np.int64),
        pace=_pace(tables, order),
    )


def _pace(tables: Tables, order: Ints) -> Paced | None:
    """As the intervals of the report's own rates have it."""
    pace = tables.pace
    if pace is None:
        return None
    at = np.zeros(len(tables.requests), np.int64)
    at[pace.sent] = np.arange(len(pace.sent))
    return pace.paced._replace(spent=pace.paced.spent[at[order]], settled=pace.paced.settled[at[order]])


def _within(windows: list[tuple[int, int]], sent_ns: Floats) -> Floats:
    """When requests were sent, in seconds of the windows alone: between two of them nothing was going on."""
    begins, ends = np.array(windows, np.float64).T
    before = np.concatenate(([0.0], np.cumsum(ends - begins)[:-1]))
    at = np.searchsorted(begins, sent_ns, side="right") - 1
    seconds: Floats = (before[at] + sent_ns - begins[at]) / 1e9
    return seconds


def _of_successes(name: str, tables: Tables) -> Floats:
    return np.where(tables.succeeded, per_request(name, tables), np.nan)


def _gaps(tables: Tables, order: Ints) -> Gaps:
    """The gaps between tokens, as `inter_token_latency` has them: g ms that brought k tokens are k gaps of g / k.

    Where there are very many, those of every second, third, ... row of the plan, the same ones in every run of it.
    """
    every = 1 + int(tables.shape.instants.sum()) // MOST_GAPS
    kept = tables.number("request") % every == 0
    position = np.full(len(tables.requests), -1)
    position[order] = np.where(kept[order], np.arange(len(order)), -1)
    owners, values, weights = [np.empty(0, np.int64)], [np.empty(0)], [np.empty(0)]
    for part in _streams.parts(tables):
        inner = _streams.not_first(part)
        rows = np.repeat(part.rows, np.diff(part.begins))
        gaps = np.diff(part.at_ns, prepend=part.at_ns[:1])
        inner &= position[rows] >= 0
        owners.append(position[rows[inner]])
        values.append(gaps[inner] / 1e6 / part.tokens[inner])
        weights.append(part.tokens[inner])
    return Gaps(np.concatenate(owners), np.concatenate(values), np.concatenate(weights))
