"""Metrics: pure functions on tables. A metric is one decorated function; its docstring is its documentation.

```
@metric("time_to_first_token", unit="ms", better="lower")
def time_to_first_token(tables: Tables) -> Result: ...
```
The modules of this package (or of the entry-point group `loadstone.metrics`) are searched for them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from loadstone.folder import RunLog

Better = Literal["lower", "higher", "neither"]


class Tables(NamedTuple):
    """What a metric may look at.

    `requests` holds the rows of the measured phase in the columns of `read.schema.REQUESTS`.
    `window_ns` runs from the first send to the last event of the phase; None when nothing was sent.
    """

    requests: pl.DataFrame
    window_ns: tuple[int, int] | None
    run: RunLog
    goodput: Mapping[str, float]


class Samples(NamedTuple):
    """Values of a distribution, float64 in the metric's unit; `weights` None means one each."""

    values: NDArray[np.float64]
    weights: NDArray[np.float64] | None = None
    note: str | None = None


class Missing(NamedTuple):
    """A metric that cannot be computed, and why, in one sentence."""

    reason: str


Result = Samples | float | Missing


class Metric(NamedTuple):
    """A metric and what it is called."""

    name: str
    unit: str
    better: Better
    fn: Callable[[Tables], Result]

    @property
    def doc(self) -> str:
        """What it means, with formula and source."""
        return self.fn.__doc__ or ""


def metric(name: str, *, unit: str, better: Better) -> Callable[[Callable[[Tables], Result]], Any]:
    """Marks a function as the metric `name`."""

    def mark(fn: Callable[[Tables], Result]) -> Callable[[Tables], Result]:
        fn.metric = Metric(name, unit, better, fn)  # type: ignore[attr-defined]  # found by `all_metrics`
        return fn

    return mark
