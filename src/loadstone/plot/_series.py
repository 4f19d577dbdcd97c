"""From moments to lines: rates in bins, levels over time, running medians; each short enough to draw.

Pure. Moments are nanoseconds of one clock; a line is a frame of `seconds` from an origin and a value. A figure has at
most `MOST_ROWS` rows a line, whatever the run's length.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import count

import numpy as np
import polars as pl
from numpy.typing import NDArray

from loadstone.summary.levels import levels

Ints = NDArray[np.int64]

MOST_ROWS = 2_000
MOST_STEPS = 200
"""Steps of a level that can be told from each other."""
STRETCHES = 100
SLOWEST = 200
MOST_BINS = 60
"""More of them than a line can show in 800 px without becoming a hedge."""
FEWEST_BINS = 16
EVENTS_A_BIN = 5
"""With fewer a line shows the counting rather than the rate."""
FEWEST = 15
"""Points that a median is taken of, where there are enough."""
MOST_MEDIANS = 400
_MINUTES_S = (30.0, 60.0, 120.0, 300.0, 600.0, 1200.0, 1800.0, 3600.0, 7200.0)


def moments(column: pl.Series) -> Ints:
    """The known moments of a column, in order."""
    found: Ints = column.drop_nulls().sort().to_numpy()
    return found


def bin_s(span_s: float, events: int) -> float:
    """A round width of bins for so many events in so many seconds.

    The smallest with at most `MOST_BINS` bins and `EVENTS_A_BIN` events in each, or with less than `FEWEST_BINS` bins.
    """
    if span_s <= 0:
        return 1.0
    return next(
        width
        for width in _widths_s()
        if span_s <= width * MOST_BINS
        and (events * width >= EVENTS_A_BIN * span_s or span_s < width * FEWEST_BINS)
    )


def _widths_s() -> Iterable[float]:
    """0.001, 0.002, 0.005, ... 10, 20, 30 s, then minutes and hours, then days."""
    yield from (float(f"{digit}e{power}") for power in range(-3, 1) for digit in (1, 2, 5))
    yield from (10.0, 20.0, *_MINUTES_S)
    yield from (86_400.0 * days / 4 for days in count(1))


def edges(first_ns: int, last_ns: int, events: int, width_s: float) -> Ints:
    """The edges of bins around events from `first_ns` to `last_ns`.

    They reach half a mean gap beyond both, so that each event has a gap's time around it, and a constant rate does not
    alternate between neighbours by its microseconds. The last bin is up to half longer or shorter.
    """
    width_ns = round(width_s * 1e9)
    margin_ns = min((last_ns - first_ns) // (2 * max(events - 1, 1)), width_ns // 2)
    start_ns, stop_ns = first_ns - margin_ns, last_ns + margin_ns + 1
    bins = max(1, round((stop_ns - start_ns) / width_ns))
    inner = start_ns + width_ns * np.arange(bins, dtype=np.int64)
    return np.append(inner, stop_ns if stop_ns - inner[-1] > 1 else inner[-1] + width_ns)


def per_second(moments_ns: Ints, edges_ns: Ints, origin_ns: int) -> pl.DataFrame:
    """`seconds` and `rate`: events in each bin over its length, from its edge on; the last edge repeats the last rate.

    `moments_ns` are in order.
    """
    counts = np.diff(np.searchsorted(moments_ns, edges_ns))
    rates = counts / (np.diff(edges_ns) / 1e9)
    return pl.DataFrame({"seconds": (edges_ns - origin_ns) / 1e9, "rate": np.append(rates, rates[-1])})


def stretch_s(came_ns: Ints, went_ns: Ints) -> float | None:
    """The length of the stretches to show a level by the means of: a round one; None when its steps are few enough."""
    if len(came_ns) + len(went_ns) <= MOST_STEPS:
        return None
    span_s = (max(int(came_ns[-1]), int(went_ns[-1])) - int(came_ns[0])) / 1e9
    return next(width for width in _widths_s() if span_s <= width * STRETCHES)


def level(came_ns: Ints, went_ns: Ints, origin_ns: int, over_s: float | None) -> pl.DataFrame:
    """`seconds` and `level`: how many had come and not gone; both arrays are in order.

    Step by step, or the time-weighted means of stretches of `over_s` seconds.
    """
    if over_s is None:
        steps_ns = np.unique(np.concatenate((came_ns, went_ns)))
        number = np.searchsorted(came_ns, steps_ns, "right") - np.searchsorted(went_ns, steps_ns, "right")
        return pl.DataFrame({"seconds": (steps_ns - origin_ns) / 1e9, "level": number.astype(float)})
    start_ns = int(came_ns[0])
    last_s = (max(int(came_ns[-1]), int(went_ns[-1])) - start_ns) / 1e9
    edges_s = np.append(np.arange(0.0, last_s, over_s), last_s)
    means = levels(came_ns - start_ns, went_ns - start_ns, edges_s)
    seconds = edges_s + (start_ns - origin_ns) / 1e9
    return pl.DataFrame({"seconds": seconds, "level": np.append(means, means[-1])})


def running_median(points: pl.DataFrame, column: str) -> pl.DataFrame:
    """The median of a twentieth of the points around each, at least 15, by position; as many rows as can be seen.

    There are as many points before as after the one in the middle, or a trend would look flat at its ends. So towards
    an end there are fewer, and where they would be less than 15 (of few points: less than half) the line ends.
    """
    values, count = points[column].to_numpy(), len(points)
    least = max(0, min(FEWEST // 2, (count - 1) // 4))
    middles = np.arange(least, count - least, max(1, count // MOST_MEDIANS))
    reaches = np.minimum(max(FEWEST, count // 20) // 2, np.minimum(middles, count - 1 - middles))
    medians = [
        float(np.median(values[at - reach : at + reach + 1]))
        for at, reach in zip(middles, reaches, strict=True)
    ]
    return points[middles].with_columns(pl.Series(column, medians, pl.Float64))


def thinned(points: pl.DataFrame, column: str) -> pl.DataFrame:
    """At most `MOST_ROWS` of the points: every so many-th of them, and the `SLOWEST`, lest what is rare be hidden."""
    if len(points) <= MOST_ROWS:
        return points
    every = -(-len(points) // (MOST_ROWS - SLOWEST))
    marked = points.with_row_index("at")
    greatest = marked.top_k(SLOWEST, by=column)["at"]
    return points[pl.concat([marked["at"].gather_every(every), greatest]).unique().sort()]
