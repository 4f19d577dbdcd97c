"""Pages as they were read, and what their counters and gauges say of a stretch of time. Pure but for `Pages.read`.

A counter only grows, unless the server began anew: what it has after a fall it has counted since. A gauge is known at the
moments when it was read, and taken to stay as it was until the next one. Moments are CLOCK_MONOTONIC ns. Knows no name of a
metric; see `telemetry.engines`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from loadstone import folder
from loadstone.telemetry.store import COLUMNS

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


class Track(NamedTuple):
    """One metric over time, one value a scrape; NaN where the page had none."""

    labels: Mapping[str, str]
    sent_ns: Ints
    at_ns: Ints
    """The value is one of a moment between these two."""
    values: Floats


class Increase(NamedTuple):
    """By how much a counter grew between two scrapes."""

    value: float
    resets: int
    """How often the server began anew in between; what it had counted since the scrape before is missing then."""
    from_ns: int
    to_ns: int
    """When the two were read."""
    covers: bool
    """The first was read before the stretch that was asked for, and the second after it: nothing of it is missing."""


@dataclass(frozen=True, eq=False)
class Pages:
    """All scrapes of one target."""

    table: pl.DataFrame
    """In the columns of `telemetry.store`."""

    @classmethod
    def read(cls, home: Path) -> dict[str, Pages]:
        """Those of a run, by target; nothing where no page was read. Raises `polars.exceptions.PolarsError`, `OSError`."""
        path = home / folder.SERVER_METRICS
        if not path.exists():
            return {}
        table = pl.read_parquet(path, columns=list(COLUMNS), glob=False)
        text = table.with_columns(pl.col("target", "family", "type", "sample", "labels").cast(pl.String))
        return {str(target): cls(part) for (target,), part in text.group_by("target", maintain_order=True)}

    @cached_property
    def moments(self) -> tuple[Ints, Ints]:
        """When each scrape was asked for and had come."""
        seen = self.table.select("sent_ns", "at_ns").unique().sort("at_ns")
        return seen["sent_ns"].to_numpy(), seen["at_ns"].to_numpy()

    @property
    def names(self) -> set[str]:
        """The names of all samples."""
        return set(self.table["sample"].unique())

    def counts(self, sample: str) -> bool:
        """Whether a sample can be a counter: every read of it was a number, and none below zero."""
        values = self.table.filter(pl.col("sample") == sample)["value"].to_numpy()
        return bool((np.isfinite(values) & (values >= 0)).all())

    def tracks(self, sample: str) -> Iterator[Track]:
        """Every series of a sample."""
        sent_ns, at_ns = self.moments
        found = self.table.filter(pl.col("sample") == sample)
        for (text,), part in found.group_by("labels", maintain_order=True):
            values = np.full(len(at_ns), np.nan)
            values[np.searchsorted(at_ns, part["at_ns"].to_numpy())] = part["value"].to_numpy()
            yield Track(json.loads(str(text)), sent_ns, at_ns, values)


def increase(track: Track, from_ns: int, to_ns: int) -> Increase | None:
    """By how much a counter grew from the last scrape before `from_ns` to the first one after `to_ns`.

    Where there is none before, from the first of all, and the same at the end. A series that the first pages did not have
    yet had counted nothing. None when there are no two scrapes.
    """
    if len(track.at_ns) < 2:
        return None
    before = int(np.searchsorted(track.at_ns, from_ns, side="right")) - 1
    after = int(np.searchsorted(track.sent_ns, to_ns, side="left"))
    first, last = max(before, 0), min(after, len(track.at_ns) - 1)
    if first >= last:
        return None
    values = track.values[first : last + 1]
    known = values[np.isfinite(values)]
    covers = before >= 0 and after < len(track.at_ns)
    moments = int(track.at_ns[first]), int(track.at_ns[last])
    earlier = track.values[: first + 1]
    seen = earlier[np.isfinite(earlier)]
    steps = np.diff(np.concatenate([seen[-1:] if len(seen) else [0.0], known]))
    falls = steps < 0
    grown = np.where(falls, known, steps)
    return Increase(float(grown.sum()), int(falls.sum()), *moments, covers)


def mean_over_time(track: Track, from_ns: int, to_ns: int) -> float | None:
    """The time-weighted mean of a gauge over a stretch; None where it was not known in all of it, or it is none."""
    at_ns, values = _known(track)
    inside = (at_ns > from_ns) & (at_ns < to_ns)
    before = int(np.searchsorted(at_ns, from_ns, side="right")) - 1
    if before < 0 or to_ns <= from_ns:
        return None
    edges = np.concatenate([[from_ns], at_ns[inside], [to_ns]])
    levels = np.concatenate([[values[before]], values[inside]])
    return float((levels * np.diff(edges)).sum() / (to_ns - from_ns))


def greatest(track: Track, from_ns: int, to_ns: int) -> float | None:
    """The greatest value of a gauge that was read within a stretch, or last before it; None where there is none."""
    at_ns, values = _known(track)
    before = max(0, int(np.searchsorted(at_ns, from_ns, side="right")) - 1)
    found = values[before : int(np.searchsorted(at_ns, to_ns, side="right"))]
    return float(found.max()) if len(found) else None


def _known(track: Track) -> tuple[Ints, Floats]:
    known = np.isfinite(track.values)
    return track.at_ns[known], track.values[known]
