"""From parts to `requests.parquet`: every planned request once, in the order of the plan.

One rule: no request is lost and none is counted twice; it is checked, not assumed. Works range by range, so that
memory holds a few parts however long the run was. Parts go when the table is synced.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray
from polars.io.plugins import register_io_source

from loadstone import folder as run_folder
from loadstone.errors import LoadstoneError
from loadstone.folder import PhaseLog, read_run
from loadstone.plan.store import UNKNOWN, WHEN_A_SLOT_FREES, read_rows
from loadstone.read.columns import sync
from loadstone.read.outcome import NOT_SENT
from loadstone.read.salvage import decode_rest
from loadstone.read.schema import REQUESTS

RANGE_ENTRIES = 128 << 10
ROW_ENTRIES = 32
"""What the scalars of a row weigh, in entries of its list columns."""

Ints = NDArray[np.int64]


class _Decoded(NamedTuple):
    """Which request is in which part, with how many output events; ordered by request."""

    request: Ints
    part: Ints
    events: Ints


def build(folder: Path) -> None:
    """Makes `requests.parquet` from the parts and the plan; does nothing when it is there already.

    What a decoder that died has left in the recording is decoded first. Raises `LoadstoneError` when a request was
    decoded twice or lies outside the phases of `run.json`.
    """
    table = folder / run_folder.REQUESTS
    parts = _parts(folder)
    if not table.exists():
        log = read_run(folder)
        phases = log.phases
        decoded = _decoded(parts)
        if len(decoded.request) < sum(phase.planned for phase in phases) and _undecoded(folder):
            decode_rest(folder, log)
            parts = _parts(folder)
            decoded = _decoded(parts)
        _check(decoded, phases)
        _write(_tables(folder, phases, decoded, parts), table, _group_rows(phases, decoded))
    for part in parts:
        part.unlink()
    if parts:
        (folder / run_folder.PARTS).rmdir()


def _parts(folder: Path) -> list[Path]:
    return sorted((folder / run_folder.PARTS).glob("d*.parquet"))


def _undecoded(folder: Path) -> bool:
    """Whether the recording may hold more than the parts: a decoder that ends well takes the segments with it."""
    return any((folder / run_folder.RECORDING).glob("w*.idx"))


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


def _check(decoded: _Decoded, phases: list[PhaseLog]) -> None:
    """Holds that every decoded request belongs to one phase, once: then the outcomes add up to what was planned."""
    twice = np.flatnonzero(np.diff(decoded.request) == 0)
    if len(twice):
        raise LoadstoneError(
            f"request {decoded.request[twice[0]]} was decoded twice; the recording is damaged."
        )
    inside = np.zeros(len(decoded.request), np.bool_)
    for phase in phases:
        inside |= (decoded.request >= phase.first_row) & (decoded.request < phase.first_row + phase.planned)
    if not inside.all():
        stray = decoded.request[~inside][0]
        raise LoadstoneError(
            f"request {stray} was sent but belongs to no phase of run.json; the run log is damaged."
        )


def _tables(
    folder: Path, phases: list[PhaseLog], decoded: _Decoded, parts: list[Path]
) -> Iterator[pl.DataFrame]:
    """The rows of the final table, range by range, ordered by request."""
    for phase in sorted(phases, key=lambda phase: phase.first_row):
        for first, stop in _ranges(phase, decoded):
            yield _filled(_planned(folder, phase, first, stop), _rows(parts, decoded, first, stop))


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
        pl.read_parquet(parts[part], glob=False).filter(wanted)
        for part in np.unique(decoded.part[low:high]).tolist()
    ]
    return pl.concat([pl.DataFrame(schema=REQUESTS), *found])


def _planned(folder: Path, phase: PhaseLog, first: int, stop: int) -> pl.DataFrame:
    """What the plan says about a range."""
    rows = list(read_rows(folder / run_folder.PLAN, first, stop))
    due = [None if row.due_ns == WHEN_A_SLOT_FREES else phase.start_ns + row.due_ns for row in rows]
    return pl.DataFrame(
        {
            "request": [row.request for row in rows],
            "phase": phase.name,
            "conversation": [row.conversation for row in rows],
            "turn": [row.turn for row in rows],
            "due_ns": due,
            "planned_input_tokens": [_known(row.isl_tokens) for row in rows],
            "planned_output_tokens": [_known(row.osl_tokens) for row in rows],
            "request_bytes": [row.body_bytes for row in rows],
        },
        schema_overrides=REQUESTS,
    )


def _known(tokens: int) -> int | None:
    return None if tokens == UNKNOWN else tokens


def _filled(planned: pl.DataFrame, decoded: pl.DataFrame) -> pl.DataFrame:
    """Every planned row with what was decoded of it; one that was never sent says so.

    Where both know something (the due time), the recording goes before the plan.
    """
    only_planned = ("phase", "conversation", "turn", "planned_input_tokens", "planned_output_tokens")
    rows = planned.join(
        decoded.drop(only_planned), on="request", how="left", maintain_order="left", suffix="_seen"
    )
    asked, told = pl.col("planned_input_tokens"), pl.col("input_tokens")
    estimated = told.is_null() & asked.is_not_null() & pl.col("outcome").is_not_null()
    return rows.with_columns(
        due_ns=pl.coalesce("due_ns_seen", "due_ns"),
        request_bytes=pl.coalesce("request_bytes_seen", "request_bytes"),
        input_tokens=pl.when(estimated).then(asked).otherwise(told),
        input_tokens_source=pl.when(estimated).then(pl.lit("planned")).otherwise("input_tokens_source"),
        outcome=pl.col("outcome").fill_null(NOT_SENT),
        retries=pl.col("retries").fill_null(0),
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
    source.sink_parquet(
        draft, compression="zstd", compression_level=1, row_group_size=group_rows, maintain_order=True
    )
    sync(draft)
    draft.replace(path)
    sync(path.parent)
