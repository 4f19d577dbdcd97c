"""What was read of the pages: in memory while the run lasts, then `server_metrics.parquet`.

A number costs 8 bytes until then. Room is bounded: when a page's is full, every other scrape of it is let go of and it is
to be read half as often, so that a run of any length keeps an even picture. The scrapes next to the begin or the end of a
phase stay.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from loadstone import folder
from loadstone.telemetry.parse import Page, Series

MOST_SAMPLES = 4_000_000
"""Of all pages of a run together: 32 MB here, and for a moment 200 MB when they are written."""

DRAFT = folder.SERVER_METRICS + ".new"
COLUMNS = ("at_ns", "sent_ns", "target", "family", "type", "sample", "labels", "value")
"""`at_ns` and `sent_ns`: CLOCK_MONOTONIC ns of the answer's end and of the request; `target`: the page's address;
`labels`: a JSON object, sorted by name."""


class Scrape(NamedTuple):
    """One page as it was read once."""

    sent_ns: int
    at_ns: int
    page: Page
    kept: bool
    """It is next to the begin or the end of a phase."""


class Scrapes:
    """All scrapes of one page, in their order."""

    def __init__(self, most_samples: int = MOST_SAMPLES) -> None:
        self._most = most_samples
        self.found: list[Scrape] = []
        self.samples = 0
        self.thinned = 0
        """Scrapes that were let go of."""
        self.every = 1
        """So many times as long as at first should lie between two scrapes."""

    def add(self, scrape: Scrape) -> None:
        """Keeps one more, and lets go of others where there is no room for it."""
        self.found.append(scrape)
        self.samples += len(scrape.page.values)
        if self.samples > self._most:
            self._thin()

    def _thin(self) -> None:
        """Lets go of every other one that nobody needs, but for the first and the last."""
        last = len(self.found) - 1
        left = [
            scrape
            for number, scrape in enumerate(self.found)
            if scrape.kept or number in (0, last) or number % 2 == 0
        ]
        if len(left) == len(self.found):
            left = [*self.found[:-1:2], self.found[-1]]  # more begins and ends than there is room for
        self.thinned += len(self.found) - len(left)
        self.found = left
        self.samples = sum(len(scrape.page.values) for scrape in left)
        self.every *= 2


def write(home: Path, pages: Sequence[tuple[str, Sequence[Series], Sequence[Scrape]]]) -> None:
    """Writes the table whole or not at all; every page comes with its address and the series that its scrapes number.

    Pages are behind each other, each in the order of time.
    """
    import numpy as np
    import polars as pl

    parts = []
    for target, series, scrapes in pages:
        if not scrapes:
            continue
        names = pl.DataFrame(
            [(target, *one) for one in series],
            schema=dict.fromkeys(COLUMNS[2:-1], pl.String),
            orient="row",
        ).with_columns(pl.all().cast(pl.Categorical))
        counts = [len(scrape.page.values) for scrape in scrapes]
        numbers, values = array("I"), array("d")
        for scrape in scrapes:
            numbers.extend(scrape.page.series)
            values.extend(scrape.page.values)
        moments = {
            name: np.repeat(np.array([getattr(scrape, name) for scrape in scrapes], np.int64), counts)
            for name in COLUMNS[:2]
        }
        parts.append(
            pl.DataFrame(moments)
            .hstack(names[np.frombuffer(numbers, np.uint32)])
            .with_columns(pl.Series("value", np.frombuffer(values, np.float64)))
        )
    if not parts:
        return
    draft = home / DRAFT
    pl.concat(parts).select(COLUMNS).write_parquet(draft, compression="zstd")
    draft.replace(home / folder.SERVER_METRICS)
