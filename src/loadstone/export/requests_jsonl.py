"""`requests.jsonl`: one JSON object a request, in the order of `requests.parquet`.

It holds that table's columns under the same names, without the lists of tokens, and beside each instant
(`due_ns`, `sent_ns`, ...) the same moment as `due_ms`, `sent_ms`, ...: milliseconds since the measured phase
began (negative while warming up). Null: the moment never came. Streamed; memory does not grow with the run.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from loadstone import folder as layout
from loadstone.export import replacing
from loadstone.report import Report

if TYPE_CHECKING:
    import polars as pl

ROLE = "requests_jsonl"
FILE = "requests.jsonl"
INSTANTS = ("due", "connect", "connected", "sent", "written", "first", "first_answer", "last", "done")


def wanted(report: Report) -> bool:
    """Always."""
    return True


def write(report: Report, folder: Path) -> None:
    """Writes `requests.jsonl`; empty when the run left no table of requests."""
    import polars as pl

    with replacing(folder / FILE) as file:
        if (folder / layout.REQUESTS).exists():
            table = pl.scan_parquet(folder / layout.REQUESTS, glob=False)
            table.select(columns(table.collect_schema(), measured_start_ns(folder))).sink_ndjson(file)


def columns(schema: pl.Schema, start_ns: int) -> list[pl.Expr]:
    """The scalar columns of `schema`, each instant followed by its milliseconds since `start_ns`."""
    import polars as pl

    chosen = []
    for name in (name for name, kind in schema.items() if not kind.is_nested()):
        chosen.append(pl.col(name))
        if name.removesuffix("_ns") in INSTANTS:
            since_ms = ((pl.col(name) - start_ns) / 1e6).round(6)  # the ns in full, without binary noise
            chosen.append(since_ms.alias(name.removesuffix("_ns") + "_ms"))
    return chosen


def measured_start_ns(folder: Path) -> int:
    """When the measured phase began, CLOCK_MONOTONIC ns; the last phase's start when none was measured."""
    phases = layout.read_run(folder).phases
    measured = [phase.start_ns for phase in phases if phase.name == "measured"]
    return [*(phase.start_ns for phase in phases), *measured][-1] if phases else 0
