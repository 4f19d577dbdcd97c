"""A decoder: follows the recordings of some workers and turns ended flights into parts of the table.

One rule: a segment is deleted only after the part with the last of its flights is synced, so that at any moment
segments and parts together hold everything. Memory holds the rows of flights under way and one part, however
many requests there are.
"""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from loadstone import folder as run_folder
from loadstone.board import Board
from loadstone.errors import LoadstoneError
from loadstone.read import beyond, columns, scrub, tally
from loadstone.read.columns import Decoded
from loadstone.read.counting import Counter
from loadstone.read.flights import flights, take_ended
from loadstone.read.hidden import Hidden
from loadstone.read.interpret import Interpreter
from loadstone.read.job import Done, Job
from loadstone.read.segments import ROWS, Rows, Segments
from loadstone.read.stamps import Offsets
from loadstone.recording import CLOCK, END

PART_TOKENS = 128 << 10
PART_REQUESTS = 5_000
PART_NS = 10_000_000_000
CLOCK_WAIT_NS = 1_000_000_000
"""Longest wait for the clock sample that follows the end of a flight."""


class _Worker:
    """One worker's recording as far as it was read."""

    def __init__(self, folder: Path, number: int, keep: bool) -> None:
        self.number = number
        self.segments = Segments(folder, number, keep)
        self.offsets = Offsets()
        self._waiting: list[Rows] = []
        self._earliest_end_ns: int | None = None
        """Of the flights that have ended and wait for their clock; None when there is none."""
        self.unsynced: list[int] = []

    def take(self, rows: Rows, before_ns: int | None) -> Rows:
        """Adds new rows; gives out those of flights that ended before that moment (None: everything left)."""
        clock = rows[rows["code"] == CLOCK]
        self.offsets.add(clock["at_ns"], clock["a"])
        self._waiting.append(rows[rows["serial"] > 0])
        ends_ns = rows["at_ns"][rows["code"] == END]
        if before_ns is not None:
            before_ns = max(before_ns, self.offsets.last_ns)
            if not self._has_ended(ends_ns, before_ns):
                return np.empty(0, ROWS)
        waiting = np.concatenate(self._waiting)
        ended, rest = (waiting, waiting[:0]) if before_ns is None else take_ended(waiting, before_ns)
        self._waiting = [rest]
        left_ns = rest["at_ns"][rest["code"] == END]
        self._earliest_end_ns = int(left_ns.min()) if len(left_ns) else None
        return ended

    def _has_ended(self, ends_ns: NDArray[np.int64], before_ns: int) -> bool:
        """Whether a flight ended before that moment: only then the rows in wait are worth a look."""
        if len(ends_ns):
            earliest = int(ends_ns.min())
            self._earliest_end_ns = min(earliest, self._earliest_end_ns or earliest)
        return self._earliest_end_ns is not None and self._earliest_end_ns < before_ns


class Decoder:
    """Decodes what its workers record, part by part."""

    def __init__(self, job: Job) -> None:
        folder = Path(job.folder)
        self._job = job
        self._parts = folder / run_folder.PARTS
        self._parts.mkdir(exist_ok=True)
        recording = folder / run_folder.RECORDING
        self._workers = [_Worker(recording, number, job.keep == "all") for number in job.workers]
        self._interpreter = Interpreter(job)
        self._count_tokens = Counter(job.tokenizer)
        self._hidden = Hidden(job.secrets)
        self._block = Board(Path(job.board), job.blocks).block(job.block) if job.board else None
        self._known, self._next_part = _earlier_parts(self._parts, job.decoder)
        self._rows: list[Decoded] = []
        self._oldest_ns = 0
        self._row_tokens = 0
        self._kernel_stamps = True

    def step(self) -> bool:
        """Decodes what has ended since the last time; whether more is waiting already."""
        more = False
        for worker in self._workers:
            rows, behind = worker.segments.poll()
            more |= behind
            self._settle(worker, worker.take(rows, time.monotonic_ns() - CLOCK_WAIT_NS))
        self._write_when_due()
        return more

    def finish(self) -> Done:
        """The workers write no more: decodes everything left, writes the last part."""
        while self.step():
            pass
        for worker in self._workers:
            self._settle(worker, worker.take(np.empty(0, ROWS), None))
        self._write()
        for worker in self._workers:
            worker.segments.close()
        return Done(
            clock_steps=max((worker.offsets.steps for worker in self._workers), default=0),
            kernel_stamps=self._kernel_stamps,
        )

    def _settle(self, worker: _Worker, rows: Rows) -> None:
        """Decodes the flights that `rows` consist of."""
        if not len(rows):
            return
        data = {number: worker.segments.data(number) for number in np.unique(rows["segment"]).tolist()}
        if self._job.keep == "all" and self._hidden:
            for segment, at, size in scrub.stained(rows, data, self._hidden):
                worker.segments.overwrite(segment, at, size)
        worker.unsynced += np.unique(rows["serial"]).tolist()
        fresh = [
            self._interpreter(worker.number, flight)
            for flight in flights(rows, worker.offsets, data)
            if flight.facts.request not in self._known
        ]
        self._estimate(fresh)
        if fresh and not self._rows:
            self._oldest_ns = time.monotonic_ns()
        self._rows += fresh
        for row in fresh:
            self._count(row)

    def _estimate(self, rows: list[Decoded]) -> None:
        """Counts with the tokenizer what the server did not count."""
        uncounted = [(row, row.uncounted) for row in rows if row.uncounted is not None]
        for (row, _), count in zip(
            uncounted, self._count_tokens([text for _, text in uncounted]), strict=True
        ):
            row.estimate(count)

    def _check(self) -> None:
        """Counts with the tokenizer, beside the server, the answers of the sample; once a part, being the costlier."""
        unchecked = [(row, row.unchecked) for row in self._rows if row.unchecked is not None]
        for (row, _), count in zip(
            unchecked, self._count_tokens([text for _, text in unchecked]), strict=True
        ):
            row.check(count)

    def _count(self, row: Decoded) -> None:
        self._row_tokens += len(row.arrival_ns)
        self._kernel_stamps &= row.scalars["kernel_stamps"]
        if self._block is not None:
            tally.bump(self._block, row.scalars)
            if self._job.watched and self._is_measured(row.scalars["request"]):
                beyond.count(self._block, row.scalars, self._job.watched)

    def _is_measured(self, request: int) -> bool:
        return any(first <= request < stop for first, stop in self._job.measured)

    def _write_when_due(self) -> None:
        full = self._row_tokens >= PART_TOKENS or len(self._rows) >= PART_REQUESTS
        if full or (self._rows and time.monotonic_ns() - self._oldest_ns >= PART_NS):
            self._write()

    def _write(self) -> None:
        """Writes a part, then lets go of the segments that are no longer needed."""
        if self._rows:
            self._check()
            name = f"d{self._job.decoder}-{self._next_part}.parquet"
            columns.write_part(self._table(), self._parts / name)
            self._next_part += 1
            self._rows = []
            self._row_tokens = 0
        for worker in self._workers:
            worker.segments.forget(worker.unsynced)
            worker.unsynced = []

    def _table(self) -> pl.DataFrame:
        """The rows as a table. One that cannot be a row of it, by a defect of an endpoint, must not cost the others."""
        try:
            return columns.frame(self._rows)
        except Exception:
            for row in self._rows:
                self._repair(row)
            return columns.frame(self._rows)

    def _repair(self, row: Decoded) -> None:
        try:
            columns.frame([row])
        except Exception as error:
            row.spoil(self._hidden.text(f"its answer could not be stored: {error!r}"))
            self._interpreter.keep(row, [])


def _earlier_parts(parts: Path, decoder: int) -> tuple[frozenset[int], int]:
    """The requests in parts that are there already (after a crash), and the number of the next part."""
    paths = sorted(parts.glob("d*.parquet"))
    mine = [int(path.stem.partition("-")[2]) for path in paths if path.stem.startswith(f"d{decoder}-")]
    return frozenset(request for path in paths for request in _requests(path)), max(mine, default=-1) + 1


def _requests(path: Path) -> list[int]:
    try:
        found: list[int] = pl.read_parquet(path, columns=["request"], glob=False)["request"].to_list()
    except pl.exceptions.PolarsError as error:
        raise LoadstoneError(f"{path} is damaged: {error}.") from None
    return found
