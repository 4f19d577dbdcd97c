"""What metrics look at: the measured requests as columns, their token streams part by part, and the run's log.

The scalar columns of all requests are in memory; the list columns, which grow with every token, are read again
from the file, some ten thousand tokens at a time, by whoever needs them. Knows no metric.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

import msgspec
import numpy as np
import polars as pl
from numpy.typing import NDArray

from loadstone.config import Config
from loadstone.folder import PhaseLog, RunLog
from loadstone.metrics import _streams
from loadstone.read.outcome import (
    CENSORED,
    CLIENT_FAULT,
    FAILURES,
    NOT_SENT,
    SUCCESSES,
    TIMEOUT_CONNECT,
    TIMEOUT_FIRST_TOKEN,
    TIMEOUT_IDLE,
    TIMEOUT_TOTAL,
    TOO_LARGE,
)
from loadstone.read.schema import REQUESTS

MEASURED = "measured"

SCALARS = tuple(
    name
    for name, kind in REQUESTS.items()
    if not isinstance(kind, pl.List) and name not in ("request_id", "phase", "fault")
)
"""The columns held in memory."""

OUT_OF_TIME = frozenset({TIMEOUT_FIRST_TOKEN, TIMEOUT_IDLE, TIMEOUT_TOTAL})
"""Under way when a time limit of ours ended them."""
ENDED_BY_CLIENT = CENSORED | OUT_OF_TIME | {TIMEOUT_CONNECT, TOO_LARGE, CLIENT_FAULT}
"""Outcomes whose end is a moment of the client's choosing and no event of the server's."""

_READ_TOKENS = 1 << 17
"""Tokens read together, about one row group of the file; one token is 20 bytes in the list columns."""
_PART_TOKENS = 1 << 15
"""Tokens looked at together, so that temporary arrays stay small."""


@dataclass(frozen=True, eq=False)
class Tables:
    """The measured phase of one run.

    `requests` has one row a request, in the columns `SCALARS` of `read.schema.REQUESTS`; arrays that have one
    entry a request are in its order. Build it with `Tables.read`.
    """

    requests: pl.DataFrame
    run: RunLog
    _part: Callable[[int, int, list[str]], pl.DataFrame]
    """The measured rows among the table's rows i to j, and of them the given columns."""
    _rows: int
    """Rows of the table, warm-up included."""

    @classmethod
    def read(cls, table: pl.LazyFrame, run: RunLog) -> Tables:
        """The tables of a run from its `requests.parquet` (or any frame in those columns)."""
        measured = pl.col("phase") == MEASURED

        def part(start: int, stop: int, columns: list[str]) -> pl.DataFrame:
            return table.slice(start, stop - start).filter(measured).select(columns).collect()

        requests = table.filter(measured).select(SCALARS).collect()
        return cls(requests, run, part, table.select(pl.len()).collect().item())

    @cached_property
    def config(self) -> Config:
        """The resolved config of the run."""
        return msgspec.convert(self.run.config, Config)

    @property
    def streaming(self) -> bool:
        """Whether answers were asked for as streams."""
        return self.config.endpoint.streaming

    @property
    def has_rate(self) -> bool:
        """Whether requests had due times of their own (open loop, capped or not)."""
        return self.config.load.request_rate is not None

    @property
    def has_cap(self) -> bool:
        """Whether a rate went together with a limit of concurrency."""
        return self.has_rate and self.config.load.concurrency is not None

    @property
    def goodput(self) -> dict[str, float]:
        """The objectives that one request has to meet, by metric, in display units."""
        return self.config.slo.goodput

    @cached_property
    def phase(self) -> PhaseLog | None:
        """The log of the measured phase; None when the run never came to it."""
        return next((phase for phase in self.run.phases if phase.name == MEASURED), None)

    @cached_property
    def succeeded(self) -> NDArray[np.bool_]:
        """For every request, whether its answer is whole."""
        return self.requests["outcome"].is_in(list(SUCCESSES)).to_numpy()

    @cached_property
    def failed(self) -> NDArray[np.bool_]:
        """For every request, whether the server failed it; what we ended, lost or never sent is no failure of its."""
        return self.requests["outcome"].is_in(list(FAILURES)).to_numpy()

    @cached_property
    def attempted(self) -> NDArray[np.bool_]:
        """For every request, whether it was tried at all: every outcome but not-sent."""
        return (self.requests["outcome"] != NOT_SENT).to_numpy()

    @cached_property
    def censored(self) -> NDArray[np.bool_]:
        """For every request, whether it was still under way when we ended it."""
        return self.requests["outcome"].is_in(list(CENSORED)).to_numpy()

    @cached_property
    def cut_off(self) -> NDArray[np.bool_]:
        """For every request, whether it had waited and would have waited longer when we cut it off.

        That is with the run, or at a time limit, though the latter is a failure of the server all the same.
        """
        return self.requests["outcome"].is_in(list(CENSORED | OUT_OF_TIME)).to_numpy()

    @cached_property
    def brought(self) -> NDArray[np.bool_]:
        """For every request, whether any output came for it, whatever became of it and whether it was counted or not."""
        text = (pl.col("text_chars") > 0) | (pl.col("reasoning_chars") > 0)
        some = (
            pl.col("first_ns").is_not_null()
            | text.fill_null(False)
            | (pl.col("output_tokens") > 0).fill_null(False)
        )
        return self.requests.select(some).to_series().to_numpy() | self.succeeded

    @cached_property
    def coalesced(self) -> NDArray[np.bool_]:
        """For every request, whether its output is several events that one read completed: none has its own moment."""
        return self.requests["coalesced"].fill_null(False).to_numpy()

    @cached_property
    def came_whole(self) -> NDArray[np.bool_]:
        """For every request, whether a stream was asked for and the answer came as one body."""
        return ~self.requests["streamed"].fill_null(True).to_numpy() & self.streaming

    @cached_property
    def window_ns(self) -> tuple[int, int] | None:
        """From the first send to the last event of the measured phase; None when nothing was sent.

        The moment at which the client ended a request, at a limit or with the run, is none of the server's events and
        does not count; what had come of the answer by then does.
        """
        ended = self.requests.select("sent_ns", "first_ns", "last_ns", self._ended().alias("done_ns"))
        sent = ended["sent_ns"].min()
        if not isinstance(sent, int):
            return None
        return sent, max(end for column in ended if isinstance(end := column.max(), int))

    def _ended(self) -> pl.Expr:
        return pl.when(~pl.col("outcome").is_in(list(ENDED_BY_CLIENT))).then(pl.col("done_ns"))

    @property
    def window_s(self) -> float:
        """The window's length in seconds; 0 when nothing was sent."""
        return (self.window_ns[1] - self.window_ns[0]) / 1e9 if self.window_ns else 0.0

    def ms(self, start: str, end: str) -> NDArray[np.float64]:
        """For every request the milliseconds between two of its moments; NaN where either never came."""
        difference = self.requests.select(pl.col(end) - pl.col(start)).to_series()
        return (difference / 1e6).fill_null(float("nan")).to_numpy()

    def number(self, name: str) -> NDArray[np.float64]:
        """For every request the number in column `name`; NaN where there is none."""
        return self.requests[name].cast(pl.Float64).fill_null(float("nan")).to_numpy()

    def until_complete_ms(self, start: str) -> NDArray[np.float64]:
        """For every request the milliseconds from `start` until the answer was complete for its user.

        That is its last token; without streaming, and where the server did not stream, the end of the response.
        """
        whole = self.came_whole | (not self.streaming)
        return np.where(whole, self.ms(start, "done_ns"), self.ms(start, "last_ns"))

    def cut_off_ms(self, start: str) -> NDArray[np.float64]:
        """For every request that was cut off, the milliseconds from `start` until then; NaN for all others.

        Counted from the due time, also for those that were never sent because the load was stopped: until the stop.
        """
        ended_ms = np.where(self.cut_off, self.ms(start, "done_ns"), np.nan)
        if start != "due_ns" or self.phase is None:
            return ended_ms
        waited_ns = self.phase.stop_ns - self.requests["due_ns"]
        waited_ms = (waited_ns / 1e6).fill_null(float("nan")).to_numpy()
        return np.where(~self.attempted & (waited_ms >= 0), waited_ms, ended_ms)

    @cached_property
    def left_ns(self) -> pl.Series:
        """For every request the moment it stopped being in flight, whoever ended it; null where it never was."""
        end = pl.coalesce("done_ns", "last_ns", "sent_ns")
        return self.requests.select(pl.when(pl.col("sent_ns").is_not_null()).then(end)).to_series()

    @cached_property
    def several_choices(self) -> NDArray[np.bool_]:
        """For every request, whether its response held more than one answer."""
        return (self.requests["choices"] > 1).fill_null(False).to_numpy()

    @cached_property
    def shape(self) -> _streams.Shape:
        """The token streams of all requests in numbers."""
        return _streams.shape(self)

    def parts(self, *columns: str) -> Iterator[tuple[int, pl.DataFrame]]:
        """All requests in parts of bounded size: position of the part's first request, and its columns."""
        position = 0
        step = self._requests_of(_READ_TOKENS)
        for start in range(0, self._rows, step):
            read = self._part(start, start + step, list(columns))
            for part in read.iter_slices(self._requests_of(_PART_TOKENS)):
                yield position, part
                position += len(part)

    def _requests_of(self, tokens: int) -> int:
        """How many requests bring that many tokens, on average; at least one."""
        mean = self.requests["output_tokens"].mean()
        return max(1, int(tokens / max(mean, 1.0))) if isinstance(mean, int | float) else 1000
