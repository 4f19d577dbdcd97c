"""The requests of a run as vLLM's and SGLang's benchmarks keep them: one entry a request, seconds, chunk gaps as they came.

Both look at successes alone, count tokens by usage, and take every chunk for one token of the inter-token latency.
"""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from loadstone import folder as layout
from loadstone.errors import LoadstoneError
from loadstone.metrics import Tables
from loadstone.report import Report
from loadstone.stats import Floats

Ints = NDArray[np.int64]
MOST_CHUNKS = 20_000_000
"""More gaps than these are not pooled for a file that lists them one by one: half a gigabyte of text."""


class Spread(NamedTuple):
    """What both tools tell of a distribution."""

    mean: float
    median: float
    std: float
    p90: float
    p95: float
    p99: float

    @classmethod
    def of(cls, values: Floats) -> Spread | None:
        """Of at least one value; numpy's linear percentiles and the population's deviation, as there."""
        known = values[np.isfinite(values)]
        if not len(known):
            return None
        median, p90, p95, p99 = np.percentile(known, (50, 90, 95, 99))
        numbers = (known.mean(), median, known.std(), p90, p95, p99)
        return cls(*map(float, numbers))


class Requests:
    """The requests that were sent in the measured phases of the run in `home`, in the order of sending."""

    def __init__(self, home: Path | None) -> None:
        if home is None or not (home / layout.REQUESTS).is_file():
            raise LoadstoneError(
                f"this format lists every request, and {home or 'a report alone'} holds no {layout.REQUESTS}; give the folder"
                " of a run."
            )
        tables = Tables.read(pl.scan_parquet(home / layout.REQUESTS, glob=False), layout.read_run(home))
        self.tables = tables.only(tables.attempted)
        self._good = self.tables.succeeded

    def of(self, values: Floats) -> list[float | None]:
        """One value a request as a list; null where it has none."""
        return [float(value) if np.isfinite(value) else None for value in values]

    def whole(self, values: Floats) -> list[int | None]:
        """The same of whole numbers."""
        return [int(value) if np.isfinite(value) else None for value in values]

    @cached_property
    def latency_s(self) -> Floats:
        """Of successes; NaN for all others."""
        return np.where(self._good, self.tables.until_complete_ms("sent_ns") / 1e3, np.nan)

    @cached_property
    def until_done_s(self) -> Floats:
        """From the send to the end of the response, its usage and [DONE] included; of successes, NaN for all others."""
        return np.where(self._good, self.tables.ms("sent_ns", "done_ns") / 1e3, np.nan)

    @cached_property
    def ttft_s(self) -> Floats:
        """Of successes that came as a stream; NaN for all others."""
        return np.where(
            self._good & self.tables.streaming, self.tables.ms("sent_ns", "first_ns") / 1e3, np.nan
        )

    @cached_property
    def output_tokens(self) -> Floats:
        """Of successes; NaN for all others."""
        return np.where(self._good, self.tables.number("output_tokens"), np.nan)

    @cached_property
    def input_tokens(self) -> Floats:
        """Of all that were sent."""
        return self.tables.number("input_tokens")

    def tpot_s(self, latency_s: Floats) -> Floats:
        """(latency - TTFT) / (n - 1); NaN for fewer than two tokens."""
        later = np.where(self.output_tokens > 1, self.output_tokens - 1, np.nan)
        return (latency_s - self.ttft_s) / later

    @cached_property
    def gaps_s(self) -> list[list[float]] | None:
        """The gaps between the chunks of every request, empty for those that have none; None where there are too many."""
        if int(np.nansum(self.output_tokens)) > MOST_CHUNKS:
            return None
        found: list[list[float]] = []
        for first, frame in self.tables.parts("arrival_ns"):
            gaps = frame.select(pl.col("arrival_ns").list.diff(null_behavior="drop").fill_null([]))
            for place, one in enumerate(gaps["arrival_ns"].to_list()):
                found.append([gap / 1e9 for gap in one] if self._good[first + place] else [])
        return found

    @property
    def completed(self) -> int:
        """Successes."""
        return int(self._good.sum())

    @property
    def failed(self) -> int:
        """Sent, and no success."""
        return len(self._good) - self.completed

    @cached_property
    def errors(self) -> list[str]:
        """The fault of every request; empty for a success."""
        faults = self.tables.column("fault")
        return ["" if good else str(fault or "") for good, fault in zip(self._good, faults, strict=True)]

    @cached_property
    def start_s(self) -> Floats:
        """When each was sent, seconds of the machine's monotonic clock."""
        return self.tables.number("sent_ns") / 1e9

    def peaks(self) -> tuple[float, int]:
        """The most chunks that came, and the most requests that were under way, within one second of a clock that begins
        with the first send: vLLM's `max_output_tokens_per_s` and `max_concurrent_requests`.
        """
        if not self.completed:
            return 0.0, 0
        begin = self.start_s[self._good].min()
        first = self.start_s - begin + self.ttft_s
        ends = self.start_s - begin + self.latency_s
        seconds = int(np.ceil(np.nanmax(ends))) + 1
        chunks = np.zeros(seconds)
        for at, gaps in zip(first, self.gaps_s or [], strict=False):
            if np.isfinite(at):
                moments = at + np.concatenate(([0.0], np.cumsum(gaps)))
                np.add.at(chunks, np.minimum(moments.astype(int), seconds - 1), 1)
        steps = np.zeros(seconds + 1)
        np.add.at(steps, (self.start_s - begin)[self._good].astype(int), 1)
        np.add.at(steps, ends[self._good].astype(int) + 1, -1)
        return float(chunks.max()), int(np.cumsum(steps).max())


def value(report: Report, name: str) -> float | None:
    """A metric that is one number; None where it is not known."""
    result = report.metrics.get(name)
    return None if result is None else result.mean
