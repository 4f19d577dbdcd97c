"""`requests.jsonl`: one JSON object a request, in the order of `requests.parquet`.

It holds that table's columns under the same names, without the lists of tokens; `target` and `model` are the server's
address and the model's name, and `phase_kind` says of what kind the phase was. Beside each instant (`due_ns`, `sent_ns`,
...) stands the same moment as `due_ms`, `sent_ms`, ...: milliseconds since the first measured phase began (negative
while warming up). Null: the moment never came. Streamed; memory does not grow with the run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loadstone import folder as layout
from loadstone.export import replacing
from loadstone.folder import PhaseLog
from loadstone.report import Report

if TYPE_CHECKING:
    import polars as pl

ROLE = "requests_jsonl"
FILE = "requests.jsonl"
INSTANTS = (
    "due", "connect", "tcp", "connected", "sent", "written", "answered", "first", "first_answer", "last", "done",
)  # fmt: skip


def wanted(report: Report) -> bool:
    """Always."""
    return True


def write(report: Report, folder: Path) -> None:
    """Writes `requests.jsonl`; empty when the run left no table of requests."""
    import polars as pl

    with replacing(folder / FILE) as file:
        if (folder / layout.REQUESTS).exists():
            table = pl.scan_parquet(folder / layout.REQUESTS, glob=False)
            chosen = columns(table.collect_schema(), layout.read_run(folder).phases, report.config)
            table.select(chosen).sink_ndjson(file)


def columns(schema: pl.Schema, phases: Sequence[PhaseLog], config: Mapping[str, Any]) -> list[pl.Expr]:
    """The scalar columns of `schema`; what is a number elsewhere by its name, each instant with its milliseconds."""
    import polars as pl

    start_ns = measured_start_ns(phases)
    names = {"target": targets(config), "model": models(config)}
    chosen = []
    for name in (name for name, kind in schema.items() if not kind.is_nested()):
        chosen.append(_named(name, dict(enumerate(names[name]))) if name in names else pl.col(name))
        if name == "phase":
            chosen.append(_named(name, {phase.name: phase.kind for phase in phases}).alias("phase_kind"))
        if name.removesuffix("_ns") in INSTANTS:
            since_ms = ((pl.col(name) - start_ns) / 1e6).round(6)  # the ns in full, without binary noise
            chosen.append(since_ms.alias(name.removesuffix("_ns") + "_ms"))
    return chosen


def _named(column: str, names: Mapping[Any, str]) -> pl.Expr:
    """A column with names in place of what stands there; null where there is no name for it."""
    import polars as pl

    if not names:
        return pl.lit(None, pl.String).alias(column)
    return pl.col(column).replace_strict(names, default=None, return_dtype=pl.String)


def targets(config: Mapping[str, Any]) -> Sequence[str]:
    """The addresses of the servers, in the order in which they are numbered; secrets are masked in them."""
    url = config.get("endpoint", {}).get("url") or ()
    return (url,) if isinstance(url, str) else url


def models(config: Mapping[str, Any]) -> Sequence[str]:
    """The names of the models, in the order in which they are numbered."""
    names = (config.get("endpoint", {}).get("model") or "").split(",")
    return [name.strip() for name in names if name.strip()]


def measured_start_ns(phases: Sequence[PhaseLog]) -> int:
    """When the first measured phase began, CLOCK_MONOTONIC ns; the last phase's start when none was measured."""
    measured = [phase.start_ns for phase in phases if phase.kind == "measured"]
    return [*measured, *(phase.start_ns for phase in reversed(phases))][0] if phases else 0
