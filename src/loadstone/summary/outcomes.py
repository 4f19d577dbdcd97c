"""How the requests ended, counted, and what went wrong most often."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

import polars as pl

from loadstone import folder as run_folder
from loadstone.errors import LoadstoneError
from loadstone.metrics import Tables
from loadstone.read.faults import samples
from loadstone.read.outcome import CENSORED, NOT_SENT, OUTCOMES, kind
from loadstone.report import Outcomes

NAMES = {"measured": "measured", "warmup": "warm-up", "cooldown": "cooldown"}
MOST_FAULTS = 20
"""Kinds of faults listed in a report."""


def outcomes(table: pl.LazyFrame, tables: Tables, folder: Path) -> Outcomes:
    """How the planned requests ended; `table` is that of all phases.

    Raises `LoadstoneError` when the counts of a phase do not add up to what it planned: then the table is not this
    run's.
    """
    measured = [log.name for log in tables.phases]
    others = {
        log.name: counts(_of(table, [log.name])) for log in tables.run.phases if log.name not in measured
    }
    found = counts(tables.requests)
    planned = sum(log.planned for log in tables.phases)
    _add_up(found, planned, "measured", folder)
    for log in tables.run.phases:
        if log.name in others:
            _add_up(others[log.name], log.planned, NAMES[log.kind], folder)
    faults = _faults(table, measured, folder / run_folder.FAULTS)
    kinds = {log.name: log.kind for log in tables.run.phases}
    return Outcomes(
        planned=planned,
        counts=found,
        faults=faults[:MOST_FAULTS],
        fault_kinds=len(faults),
        not_sent=_not_sent(table, measured)[:MOST_FAULTS],
        warmup=_sum(told for name, told in others.items() if kinds[name] == "warmup"),
        cooldown=_sum(told for name, told in others.items() if kinds[name] == "cooldown"),
        retries=int(tables.requests["retries"].sum()),
    )


def counts(requests: pl.DataFrame) -> dict[str, int]:
    """Requests by outcome, in the order of `OUTCOMES`; only outcomes that occurred."""
    return _ordered(dict(requests["outcome"].value_counts().iter_rows()))


def _sum(parts: Iterable[dict[str, int]]) -> dict[str, int]:
    total: Counter[str] = Counter()
    for part in parts:
        total.update(part)
    return _ordered(total)


def _ordered(found: Mapping[str, int]) -> dict[str, int]:
    return {name: found[name] for name in OUTCOMES if name in found}


def _of(table: pl.LazyFrame, phases: Collection[str]) -> pl.DataFrame:
    return table.filter(_in(phases)).select("outcome").collect()


def _in(phases: Collection[str]) -> pl.Expr:
    return pl.col("phase").is_in(list(phases))


def _add_up(counts: dict[str, int], planned: int, phase: str, folder: Path) -> None:
    if sum(counts.values()) != planned:
        raise LoadstoneError(
            f"{folder / run_folder.REQUESTS} holds {sum(counts.values())} {phase} requests, but {run_folder.RUN}"
            f" says that {planned} were planned; the folder is damaged, run again."
        )


def _faults(table: pl.LazyFrame, phases: Collection[str], evidence: Path) -> tuple[dict[str, Any], ...]:
    """All kinds of faults, the most frequent first; what we cut off is none.

    Messages that differ in their numbers alone are one; the first stands for all.
    """
    faulty = ~pl.col("outcome").is_in([*CENSORED, NOT_SENT])
    failed = table.filter(_in(phases), faulty, pl.col("fault").is_not_null())
    rows = failed.group_by("outcome", "fault", maintain_order=True).len().collect().iter_rows()
    kinds: dict[tuple[str, str], dict[str, Any]] = {}
    for outcome, message, count in rows:
        new = {"outcome": outcome, "message": message, "count": 0, "sample": None}
        kinds.setdefault((outcome, kind(message)), new)["count"] += count
    for sample in samples(evidence):
        if sample.file and (fault := kinds.get((sample.outcome, sample.kind))) and fault["sample"] is None:
            fault["sample"] = f"{evidence.name}/{sample.file}"
    return _most(kinds.values())


def _not_sent(table: pl.LazyFrame, phases: Collection[str]) -> tuple[dict[str, Any], ...]:
    """Why requests were never sent. Reasons that differ in their numbers alone are one."""
    unsent = table.filter(_in(phases), pl.col("outcome") == NOT_SENT)
    kinds: dict[str, dict[str, Any]] = {}
    for reason, count in unsent.group_by("fault", maintain_order=True).len().collect().iter_rows():
        told = reason or OUTCOMES[NOT_SENT]
        kinds.setdefault(kind(told), {"reason": told, "count": 0})["count"] += count
    return _most(kinds.values())


def _most(kinds: Iterable[dict[str, Any]]) -> tuple[dict[str, Any], ...]:
    return tuple(sorted(kinds, key=lambda one: -int(one["count"])))
