"""How the requests ended, counted, and what went wrong most often."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import polars as pl

from loadstone import folder as run_folder
from loadstone.errors import LoadstoneError
from loadstone.metrics import Tables
from loadstone.read.faults import samples
from loadstone.read.outcome import CENSORED, NOT_SENT, OUTCOMES, kind
from loadstone.report import Outcomes

MEASURED = pl.col("phase") == "measured"
MOST_FAULTS = 20
"""Kinds of faults listed in a report."""


def outcomes(table: pl.LazyFrame, tables: Tables, folder: Path) -> Outcomes:
    """How the planned requests ended; `table` is that of all phases.

    Raises `LoadstoneError` when the counts of a phase do not add up to what it planned: then the table is not this
    run's.
    """
    planned = tables.phase.planned if tables.phase else 0
    counts = _counts(tables.requests)
    warmup = _counts(table.filter(pl.col("phase") == "warmup").select("outcome").collect())
    _add_up(counts, planned, "measured", folder)
    _add_up(warmup, sum(log.planned for log in tables.run.phases if log.name == "warmup"), "warm-up", folder)
    faults = _faults(table, folder / run_folder.FAULTS)
    return Outcomes(
        planned=planned,
        counts=counts,
        faults=faults[:MOST_FAULTS],
        fault_kinds=len(faults),
        not_sent=_not_sent(table)[:MOST_FAULTS],
        warmup=warmup,
        retries=int(tables.requests["retries"].sum()),
    )


def _add_up(counts: dict[str, int], planned: int, phase: str, folder: Path) -> None:
    if sum(counts.values()) != planned:
        raise LoadstoneError(
            f"{folder / run_folder.REQUESTS} holds {sum(counts.values())} {phase} requests, but {run_folder.RUN}"
            f" says that {planned} were planned; the folder is damaged, run again."
        )


def _counts(requests: pl.DataFrame) -> dict[str, int]:
    """Requests by outcome, in the order of `OUTCOMES`; only outcomes that occurred."""
    found = dict(requests["outcome"].value_counts().iter_rows())
    return {name: found[name] for name in OUTCOMES if name in found}


def _faults(table: pl.LazyFrame, evidence: Path) -> tuple[dict[str, Any], ...]:
    """All kinds of faults, the most frequent first; what we cut off is none.

    Messages that differ in their numbers alone are one; the first stands for all.
    """
    faulty = ~pl.col("outcome").is_in([*CENSORED, NOT_SENT])
    failed = table.filter(MEASURED, faulty, pl.col("fault").is_not_null())
    rows = failed.group_by("outcome", "fault", maintain_order=True).len().collect().iter_rows()
    kinds: dict[tuple[str, str], dict[str, Any]] = {}
    for outcome, message, count in rows:
        new = {"outcome": outcome, "message": message, "count": 0, "sample": None}
        kinds.setdefault((outcome, kind(message)), new)["count"] += count
    for sample in samples(evidence):
        if sample.file and (fault := kinds.get((sample.outcome, sample.kind))) and fault["sample"] is None:
            fault["sample"] = f"{evidence.name}/{sample.file}"
    return _most(kinds.values())


def _not_sent(table: pl.LazyFrame) -> tuple[dict[str, Any], ...]:
    """Why requests were never sent. Reasons that differ in their numbers alone are one."""
    unsent = table.filter(MEASURED, pl.col("outcome") == NOT_SENT)
    kinds: dict[str, dict[str, Any]] = {}
    for reason, count in unsent.group_by("fault", maintain_order=True).len().collect().iter_rows():
        told = reason or OUTCOMES[NOT_SENT]
        kinds.setdefault(kind(told), {"reason": told, "count": 0})["count"] += count
    return _most(kinds.values())


def _most(kinds: Iterable[dict[str, Any]]) -> tuple[dict[str, Any], ...]:
    return tuple(sorted(kinds, key=lambda one: -int(one["count"])))
