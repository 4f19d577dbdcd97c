"""From parts to `requests.parquet`: every planned request once, in the order of the plan.

One rule: no request is lost and none is counted twice; it is checked, not assumed. Works range by range, so that
memory holds a few parts however long the run was. Parts go when the table is synced.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray
from polars.io.plugins import register_io_source

from loadstone import folder as run_folder
from loadstone.errors import LoadstoneError
from loadstone.folder import PhaseLog, RunLog, read_run, write_run
from loadstone.plan.store import ANY_TARGET, ROW, UNKNOWN, WHEN_A_SLOT_FREES, Row, read_rows, rows_file
from loadstone.read.columns import sync
from loadstone.read.faults import Evidence
from loadstone.read.flights import LOST
from loadstone.read.outcome import NOT_SENT
from loadstone.read.salvage import decode_rest
from loadstone.read.schema import REQUESTS, completed
from loadstone.read.uncomposed import Uncomposed
from loadstone.read.unseen import BROKEN, Before, Fate, Unseen, deaths, lost_with, was_open

MOST_NOT_COMPOSED = 1_000_000
"""Rows that count although the composer did not come to them."""
RANGE_ENTRIES = 128 << 10
ROW_ENTRIES = 32
"""What the scalars of a row weigh, in entries of its list columns."""

Ints = NDArray[np.int64]


class _Decoded(NamedTuple):
    """Which request is in which part, with how many output events; ordered by request."""

    request: Ints
    part: Ints
    events: Ints


def build(folder: Path, secrets: Sequence[str] | None = None) -> None:
    """Makes `requests.parquet` from the parts and the plan; does nothing when it is there already.

    What a decoder that died has left in the recording is decoded first, without the run's `secrets`; where nobody
    knows them any more (None), without what looks like one. Raises `LoadstoneError` when a request was decoded twice
    or lies outside the phases of `run.json`, and when a part is damaged.
    """
    table = folder / run_folder.REQUESTS
    parts = _parts(folder)
    if not table.exists():
        log = read_run(folder)
        _check_plan(folder, log)
        decoded = _decoded(parts)
        if _undecoded(folder, log, len(decoded.request)):
            decode_rest(folder, log, secrets)
            parts = _parts(folder)
            decoded = _decoded(parts)
        if _widen(log, decoded):
            write_run(folder, log)
        _check(decoded, log.phases)
        try:
            _write(_tables(folder, log, decoded, parts), table, _group_rows(log.phases, decoded))
        except pl.exceptions.PolarsError as error:
            raise LoadstoneError(f"{folder / run_folder.PARTS} is damaged: {error}.") from None
    for part in (*parts, *(folder / run_folder.PARTS).glob("d*.new")):
        part.unlink()
    with suppress(OSError):  # it is gone, or holds what is not ours
        (folder / run_folder.PARTS).rmdir()


def _check_plan(folder: Path, log: RunLog) -> None:
    """Holds that no phase counts rows far beyond the plan's, which would take memory for nothing."""
    for phase in log.phases:
        plan = folder / run_folder.PLAN / rows_file(phase.first_row)
        rows = plan.stat().st_size // ROW.size if phase.first_row >= 0 and plan.exists() else 0
        if phase.first_row < 0 or not 0 <= phase.planned <= rows + MOST_NOT_COMPOSED:
            raise LoadstoneError(
                f"{folder / run_folder.RUN} counts {phase.planned} rows from {phase.first_row} on, but the plan has {rows};"
                " the run log or the plan is damaged."
            )


def _parts(folder: Path) -> list[Path]:
    return sorted((folder / run_folder.PARTS).glob("d*.parquet"))


def _undecoded(folder: Path, log: RunLog, decoded: int) -> bool:
    """Whether the recording may hold more than the parts: a decoder that ends well takes the segments with it."""
    if not any((folder / run_folder.RECORDING).glob("w*.idx")):
        return False
    return decoded < sum(phase.planned for phase in log.phases) or log.config["output"]["keep"] != "all"


def _decoded(parts: list[Path]) -> _Decoded:
    columns = []
    for number, part in enumerate(parts):
        try:
            found = (
                pl.scan_parquet(part, glob=False)
                .select("request", events=pl.col("arrival_ns").list.len())
                .collect()
            )
        except pl.exceptions.PolarsError as error:
            raise LoadstoneError(f"{part} is damaged: {error}.") from None
        columns.append(
            found.select("request", pl.lit(number).alias("part"), "events").cast(pl.Int64).to_numpy()
        )
    rows = np.concatenate([np.empty((0, 3), np.int64), *columns])
    rows = rows[np.argsort(rows[:, 0], kind="stable")]
    return _Decoded(rows[:, 0], rows[:, 1], rows[:, 2])


def _widen(log: RunLog, decoded: _Decoded) -> bool:
    """Lets the phases that a stop ended reach to the last request of theirs that was sent; whether one did not.

    A worker hears of a stop a moment after main gave the order, and what it sent in between counts as well.
    """
    if not log.phases or log.stopped_by is None:
        return False
    ordered = sorted(log.phases, key=lambda phase: phase.first_row)
    limits = [*(phase.first_row for phase in ordered[1:]), None]
    before = [phase.planned for phase in ordered]
    for phase, limit in zip(ordered, limits, strict=True):
        if was_open(log, phase):
            phase.planned = max(_seen_rows(phase, decoded, limit), phase.planned)
    return before != [phase.planned for phase in ordered]


def _check(decoded: _Decoded, phases: list[PhaseLog]) -> None:
    """Holds that every decoded request belongs to one phase, once: then the outcomes add up to what was planned."""
    twice = np.flatnonzero(np.diff(decoded.request) == 0)
    if len(twice):
        raise LoadstoneError(
            f"request {decoded.request[twice[0]]} was decoded twice; the recording is damaged."
        )
    inside = np.zeros(len(decoded.request), np.int64)
    for phase in phases:
        inside += (decoded.request >= phase.first_row) & (decoded.request < phase.first_row + phase.planned)
    if not (inside == 1).all():
        stray = decoded.request[inside != 1][0]
        where = "no phase" if not inside[inside != 1][0] else "two phases"
        raise LoadstoneError(
            f"request {stray} was sent but belongs to {where} of run.json; the run log is damaged."
        )


def _tables(folder: Path, log: RunLog, decoded: _Decoded, parts: list[Path]) -> Iterator[pl.DataFrame]:
    """The rows of the final table, range by range, ordered by request; every planned one is there once."""
    evidence = None if _keeps_nothing(log) else Evidence(folder / run_folder.FAULTS)
    how = {worker: lost_with(worker, death.how) for worker, death in deaths(log).items()}
    for phase in sorted(log.phases, key=lambda phase: phase.first_row):
        fates = _Fates(Unseen(log, phase, _seen_rows(phase, decoded, phase.first_row + phase.planned)))
        uncomposed = Uncomposed(log, phase)
        for first, stop in _ranges(phase, decoded):
            planned = list(read_rows(folder / run_folder.PLAN, first, stop))
            if len(planned) < stop - first:  # a plan has no gaps: the last ones are missing
                planned += uncomposed.rows(first + len(planned), stop)
            seen = _explained(_rows(parts, decoded, first, stop), how)
            rest = fates.of(planned, first, stop, seen)
            if evidence is not None:
                _note(evidence, rest)
            table = _filled(_planned(phase, planned, first, stop), pl.concat([seen, rest]))
            if table.height != stop - first:
                raise LoadstoneError(f"{folder / run_folder.PLAN} is damaged: a row is there twice.")
            yield table


def _keeps_nothing(log: RunLog) -> bool:
    return bool(log.config.get("output", {}).get("keep") == "none")


def _seen_rows(phase: PhaseLog, decoded: _Decoded, limit: int | None) -> int:
    """The rows of a phase up to the last one below `limit` that was decoded."""
    below = len(decoded.request) if limit is None else int(np.searchsorted(decoded.request, limit))
    return max(int(decoded.request[below - 1]) + 1 - phase.first_row, 0) if below else 0


def _explained(seen: pl.DataFrame, how: dict[int, str]) -> pl.DataFrame:
    """The same rows; where a request was lost with its worker, the fault says how that one ended."""
    lost = (pl.col("fault") == LOST) & pl.col("worker").is_in(list(how))
    told = pl.col("worker").replace_strict(how, default=None, return_dtype=pl.String)
    return seen.with_columns(fault=pl.when(lost).then(told).otherwise("fault")) if how else seen


class _Fates:
    """What became of the requests of a phase of which nothing was recorded; asked range by range, in their order."""

    def __init__(self, unseen: Unseen) -> None:
        self._unseen = unseen
        self._turns: dict[int, Before] = {}
        """The last turn seen of every conversation of which another one is to come."""

    def of(self, planned: list[Row], first: int, stop: int, seen: pl.DataFrame) -> pl.DataFrame:
        """The rows of a range that were not seen, with their fates."""
        plan = {row.request: row for row in planned}
        ended = {
            request: Before(name, worker)
            for request, name, worker in seen.select("request", "outcome", "worker").iter_rows()
        }
        fates = {
            request: fate
            for request in range(first, stop)
            if (fate := self._next(request, plan.get(request), ended.get(request)))
        }
        told: dict[str, list[Any]] = {
            "request": list(fates),
            "worker": [fate.worker for fate in fates.values()],
            "outcome": [fate.outcome for fate in fates.values()],
            "fault": [fate.fault for fate in fates.values()],
        }
        table = pl.DataFrame(told, schema={name: REQUESTS[name] for name in told})
        return pl.concat([pl.DataFrame(schema=REQUESTS), table], how="diagonal")

    def _next(self, request: int, row: Row | None, ended: Before | None) -> Fate | None:
        """The fate of the next request; None when it was seen."""
        before = self._turns.pop(row.conversation, None) if row else None
        if row and not row.final and (last := ended or before):
            self._turns[row.conversation] = last
        return None if ended else self._unseen.fate(request, row, before)


def _note(evidence: Evidence, unseen: pl.DataFrame) -> None:
    """A line in the index of faults for every kind of request that was not seen; there are no bytes of any."""
    for name, fault in unseen.select("outcome", "fault").unique(maintain_order=True).iter_rows():
        if evidence.wants(name, fault):
            evidence.keep(name, fault, None, b"")


def _ranges(phase: PhaseLog, decoded: _Decoded) -> Iterator[tuple[int, int]]:
    """Cuts the requests of a phase into ranges of about `RANGE_ENTRIES`."""
    low, high = np.searchsorted(decoded.request, [phase.first_row, phase.first_row + phase.planned])
    weights = np.full(phase.planned, ROW_ENTRIES, np.int64)
    weights[decoded.request[low:high] - phase.first_row] += decoded.events[low:high]
    cuts = np.flatnonzero(np.diff(np.cumsum(weights) // RANGE_ENTRIES)) + 1
    bounds = [0, *cuts.tolist(), phase.planned]
    for first, stop in pairwise(bounds):
        if stop > first:
            yield phase.first_row + first, phase.first_row + stop


def _rows(parts: list[Path], decoded: _Decoded, first: int, stop: int) -> pl.DataFrame:
    """The decoded rows of a range, out of the parts that hold any."""
    low, high = np.searchsorted(decoded.request, [first, stop])
    wanted = pl.col("request").is_between(first, stop - 1)
    found = [
        completed(pl.scan_parquet(parts[part], glob=False)).select(list(REQUESTS)).filter(wanted).collect()
        for part in np.unique(decoded.part[low:high]).tolist()
    ]
    return pl.concat([pl.DataFrame(schema=REQUESTS), *found])


def _planned(phase: PhaseLog, planned: list[Row], first: int, stop: int) -> pl.DataFrame:
    """What the plan says about a range; nothing about rows that were never composed."""
    composed = pl.DataFrame(
        {
            "request": [row.request for row in planned],
            "conversation": [row.conversation for row in planned],
            "turn": [row.turn for row in planned],
            "target": [None if row.target == ANY_TARGET else row.target for row in planned],
            "model": [None if row.is_end else row.model for row in planned],
            "due_ns": [_due_ns(phase, row) for row in planned],
            "planned_input_tokens": [_known(row.isl_tokens) for row in planned],
            "planned_output_tokens": [_known(row.osl_tokens) for row in planned],
            "request_bytes": [row.body_bytes or None for row in planned],
        },
        schema_overrides=REQUESTS,
    )
    every = pl.DataFrame({"request": range(first, stop)}, schema_overrides=REQUESTS)
    return every.join(composed, on="request", how="left", maintain_order="left").with_columns(
        phase=pl.lit(phase.name)
    )


def _due_ns(phase: PhaseLog, row: Row) -> int | None:
    """When a row was due by the plan; None where that was to come of what happened, a slot or the turn before.

    None as well where the phase had stopped by then: a later turn of a conversation that had begun.
    """
    if row.follows or row.due_ns == WHEN_A_SLOT_FREES:
        return None
    due_ns = phase.start_ns + row.due_ns
    return due_ns if due_ns < phase.stop_ns else None


def _known(tokens: int) -> int | None:
    return None if tokens == UNKNOWN else tokens


def _filled(planned: pl.DataFrame, decoded: pl.DataFrame) -> pl.DataFrame:
    """Every planned row with what became of it.

    Where both know something (the due time, the server), the recording goes before the plan. What was not to be sent
    any more was never due.
    """
    only_planned = ("phase", "conversation", "turn", "model", "planned_input_tokens", "planned_output_tokens")
    rows = planned.join(
        decoded.drop(only_planned), on="request", how="left", maintain_order="left", suffix="_seen"
    )
    broken = pl.col("fault").is_in(list(BROKEN)).fill_null(False)
    asked, told = pl.col("planned_input_tokens"), pl.col("input_tokens")
    estimated = told.is_null() & asked.is_not_null() & (pl.col("outcome") != NOT_SENT)
    return rows.with_columns(
        due_ns=pl.coalesce("due_ns_seen", pl.when(~broken).then("due_ns")),
        target=pl.coalesce("target_seen", "target"),
        request_bytes=pl.coalesce("request_bytes_seen", "request_bytes"),
        input_tokens=pl.when(estimated).then(asked).otherwise(told),
        input_tokens_source=pl.when(estimated).then(pl.lit("planned")).otherwise("input_tokens_source"),
        retries=pl.col("retries").fill_null(0),
        redirects=pl.col("redirects").fill_null(0),
        arrival_ns=pl.col("arrival_ns").fill_null([]),
        read_ns=pl.col("read_ns").fill_null([]),
    ).select(pl.col(name).cast(dtype) for name, dtype in REQUESTS.items())


def _group_rows(phases: list[PhaseLog], decoded: _Decoded) -> int:
    """Rows of a row group of the file: about a range, so that writer and readers hold no more than that."""
    rows = sum(phase.planned for phase in phases)
    weight = rows * ROW_ENTRIES + int(decoded.events.sum())
    return max(1, rows * RANGE_ENTRIES // max(weight, 1))


def _write(tables: Iterator[pl.DataFrame], path: Path, group_rows: int) -> None:
    """Streams the tables into one file: whole and synced under its name, or not at all."""
    draft = path.with_suffix(".new")
    source = register_io_source(lambda *_: tables, schema=REQUESTS)
    try:
        source.sink_parquet(
            draft, compression="zstd", compression_level=1, row_group_size=group_rows, maintain_order=True
        )
        sync(draft)
    except BaseException:
        draft.unlink(missing_ok=True)  # on a full disk its space is needed
        raise
    draft.replace(path)
    sync(path.parent)
