"""The scalar columns of all requests: those that many look at are held in memory, as narrow as they can be without loss,
the others are read from the table by whoever asks.

At a million requests a number is 8 MB and a name 16 MB, and reading a table in one go takes three times its size; so
names become numbers, and a few columns are read at a time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import polars as pl
from numpy.typing import NDArray

from loadstone.read.schema import REQUESTS

Ints = NDArray[np.int64]

HELD = (
    "conversation",
    "turn",
    "target",
    "model",
    "outcome",
    "retries",
    "redirects",
    "retry_after_s",
    "streamed",
    "coalesced",
    "compressed",
    "unfinished_event",
    "choices",
    "due_ns",
    "connect_ns",
    "tcp_ns",
    "connected_ns",
    "sent_ns",
    "written_ns",
    "answered_ns",
    "first_ns",
    "last_ns",
    "done_ns",
    "kernel_stamps",
    "input_tokens",
    "output_tokens",
    "output_tokens_source",
    "usage_cached_tokens",
)
"""Columns in memory, beside `phase`."""
_TOGETHER = 4
"""Columns read at a time."""


def held(table: pl.LazyFrame, phases: Sequence[str]) -> tuple[pl.DataFrame, Ints]:
    """The requests of some phases in the columns held, and where in the table each stands."""
    # A byte a request where a name would take sixteen; null: of another phase.
    phase = table.select(pl.col("phase").cast(pl.Enum(phases), strict=False)).collect().to_series()
    at = np.flatnonzero(phase.is_not_null().to_numpy())
    everyone = len(at) == len(phase)
    found = [phase if everyone else phase[at]]
    for names in _some(HELD):
        read = table.select(map(_narrow, names)).collect()
        found += (read if everyone else read[at]).rechunk().get_columns()
    return pl.DataFrame(found), at


def column(table: pl.LazyFrame, name: str, at: Ints) -> pl.Series:
    """Any scalar column of some requests, by where in the table they stand, in ascending order."""
    if not len(at):
        return pl.Series(name, [], REQUESTS[name])
    start, stop = int(at[0]), int(at[-1]) + 1
    read = table.slice(start, stop - start).select(name).collect().to_series()
    return read if len(read) == len(at) else read[at - start]


def _some(names: Sequence[str]) -> Iterator[Sequence[str]]:
    return (names[first : first + _TOGETHER] for first in range(0, len(names), _TOGETHER))


def _narrow(name: str) -> pl.Expr:
    return pl.col(name).cast(pl.Categorical) if REQUESTS[name] == pl.String else pl.col(name)
