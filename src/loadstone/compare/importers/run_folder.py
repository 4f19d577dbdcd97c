"""A run's folder: `report.json` for what was asked and found, `requests.parquet` for every request."""

from __future__ import annotations

from pathlib import Path

import msgspec
import numpy as np
import polars as pl

from loadstone import folder as layout
from loadstone.compare.importers import report_json
from loadstone.compare.importers._document import Document
from loadstone.compare.sides import Floats, Gaps, Ints, Requests, Run
from loadstone.errors import LoadstoneError, UsageError
from loadstone.folder import read_run
from loadstone.metrics import Tables, _streams, per_request
from loadstone.metrics.goodput import met

POOLED = "inter_token_latency"
OF_ONE = ("time_to_first_token", "time_per_output_token", "request_latency", "request_latency_from_due")
"""Metrics with one value a request."""


def run(path: Path) -> Run:
    """The run. Raises `UsageError` when the folder lacks something or holds what is damaged."""
    for name in (layout.REPORT, layout.REQUESTS):
        if not (path / name).is_file():
            again = f"`loadstone report {path}` makes it from what was recorded"
            raise UsageError(f"{path}: holds no {name}; {again}, when the run has ended.")
    try:
        document = Document((msgspec.json.decode((path / layout.REPORT).read_bytes()),), lines=False)
        found = report_json.run(str(path), document)
        tables = Tables.read(pl.scan_parquet(path / layout.REQUESTS, glob=False), read_run(path))
        return found._replace(requests=requests(tables))
    except (
        msgspec.DecodeError,
        pl.exceptions.PolarsError,
        OSError,
        KeyError,
        TypeError,
        ValueError,
        LoadstoneError,
    ) as error:
        raise UsageError(f"{path}: a file of the run is damaged or of another version: {error}.") from None


def requests(tables: Tables) -> Requests | None:
    """The requests that were sent, in the order of sending; None when none was."""
    sent = tables.number("sent_ns")
    order = np.argsort(sent, kind="stable")
    order = order[np.isfinite(sent[order])]
    window = tables.window_ns
    if not len(order) or window is None:
        return None
    shape = tables.shape
    later = np.where(shape.instants > shape.streams, shape.tokens - shape.first_tokens, 0.0)
    judged = tables.attempted & ~tables.cancelled
    return Requests(
        sent_s=(sent[order] - window[0]) / 1e9,
        end_s=(window[1] - window[0]) / 1e9,
        succeeded=tables.succeeded[order],
        failed=tables.failed[order],
        latencies={name: _of_successes(name, tables)[order] for name in OF_ONE},
        output_tokens=tables.number("output_tokens")[order],
        input_tokens=tables.number("input_tokens")[order],
        pooled={POOLED: _gaps(tables, order)},
        pooled_sums={POOLED: ((shape.span_ns / 1e6 * (later > 0))[order], later[order])},
        good=(met(tables) & judged)[order] if tables.goodput else None,
        keys=tables.number("request")[order].astype(np.int64),
    )


def _of_successes(name: str, tables: Tables) -> Floats:
    return np.where(tables.succeeded, per_request(name, tables), np.nan)


def _gaps(tables: Tables, order: Ints) -> Gaps:
    """Every gap between tokens, as `inter_token_latency` has them: g ms that brought k tokens are k gaps of g / k."""
    position = np.full(len(tables.requests), -1)
    position[order] = np.arange(len(order))
    owners, values, weights = [np.empty(0, np.int64)], [np.empty(0)], [np.empty(0)]
    for part in _streams.parts(tables):
        inner = _streams.not_first(part)
        rows = np.repeat(part.rows, np.diff(part.begins))
        gaps = np.diff(part.at_ns, prepend=part.at_ns[:1])
        owners.append(position[rows[inner]])
        values.append(gaps[inner] / 1e6 / part.tokens[inner])
        weights.append(part.tokens[inner])
    owner = np.concatenate(owners)
    return Gaps(owner[owner >= 0], np.concatenate(values)[owner >= 0], np.concatenate(weights)[owner >= 0])
