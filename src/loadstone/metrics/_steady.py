"""The steady state: the longest span of a measured phase over which the load was what it came to.

The level is the number of requests in flight (of all phases, since a server does not know them apart), as means over bins of
at least half the time that a request is in flight in the middle: shorter, and the moment between an answer and the next
request would end a span.

- With a limit on requests in flight that was reached (in half of the bins in which requests were sent): the longest
  run of bins at 95 % of the limit or more (the rule of SGLang's steady_state.py, which takes the peak for the limit).
- Else the level has a plateau: its median over the second half of the time in which requests were sent. The span goes
  from the first bin at 95 % of it or more to the last one, within that time; where the level trembles more than that, from
  the first to the last that is no lower than a quarter of the bins of that half. In between the level may be lower: with
  Poisson arrivals n requests in flight are n give or take its root, so that no long span stays above 95 %.

It says where a steady state would be. Whether it is one, `trends` say.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from loadstone.estimate.trend import trend
from loadstone.metrics._sweep import Ints, levels, means
from loadstone.stats import Floats

if TYPE_CHECKING:
    from loadstone.folder import PhaseLog
    from loadstone.metrics._tables import Tables

SHARE = 0.95
"""Of the limit or the plateau."""
MOST_BINS = 400
LEAST_BINS = 8
"""In which requests were sent; with fewer the level has no shape."""
LEAST_FLIGHTS = 2.0
"""A shorter span, in median times in flight, is one in which hardly a request begins and ends."""
BATCHES = 20
LEAST_BATCHES = 8
PER_BATCH = 5
"""Requests behind a mean of a trend."""
P = 0.01
"""A trend is told from chance below; there are three tests."""
CHANGE = 0.05
"""A smaller change is none that matters."""


class Steady(NamedTuple):
    """A span, CLOCK_MONOTONIC ns, and the level of which it has 95 %."""

    start_ns: int
    stop_ns: int
    level: float
    level_is: Literal["cap", "plateau"]
    flight_ns: float
    """How long a request is in flight in the middle."""
    late: Floats
    """The levels of the bins in the second half of the time in which requests were sent, where a plateau was made of them."""


class Drift(NamedTuple):
    """How a metric changed over a span; `found` None: it cannot be told, see `reason`."""

    of: str
    found: bool | None
    change: float | None = None
    """From the first to the last of the batches, of their median."""
    p: float | None = None
    reason: str | None = None


def steady(tables: Tables) -> Steady | str:
    """The longest span of all measured phases; else why there is none, as a sentence."""
    everyone = tables.beside("sent_ns", "last_ns", "done_ns")
    flown = everyone.select(
        "sent_ns", left_ns=pl.max_horizontal("sent_ns", pl.coalesce("done_ns", "last_ns"))
    ).drop_nulls()
    found = [_of_phase(tables, log, flown) for log in tables.phases]
    spans = [one for one in found if isinstance(one, Steady)]
    if spans:
        return max(spans, key=lambda span: span.stop_ns - span.start_ns)
    return next((one for one in found if isinstance(one, str)), "nothing was measured.")


def _of_phase(tables: Tables, log: PhaseLog, flown: pl.DataFrame) -> Steady | str:
    own = tables.of_phases(log.name)
    sent_ns = own.requests["sent_ns"]
    start_ns, last_ns, flight_ns = sent_ns.min(), sent_ns.max(), (own.left_ns - sent_ns).median()
    if (
        not isinstance(start_ns, int)
        or not isinstance(last_ns, int)
        or not isinstance(flight_ns, int | float)
    ):
        return "no request was sent."
    lasts_ns = last_ns - start_ns
    width_ns = max(lasts_ns // MOST_BINS, int(flight_ns / 2), 1)
    bins = lasts_ns // width_ns
    if bins < LEAST_BINS:
        return (
            f"requests were sent for {lasts_ns / 1e9:.3g} s, and one takes {flight_ns / 1e9:.3g} s in the middle: too short for a"
            " steady state."
        )
    edges_ns = start_ns + width_ns * np.arange(max(_end_ns(own) - start_ns, lasts_ns) // width_ns + 1)
    window_ns = (start_ns, int(edges_ns[-1]))
    course = levels(flown["sent_ns"].to_numpy(), flown["left_ns"].to_numpy(), window_ns)
    level = means(course, start_ns, edges_ns)
    cap = next((load.slots for load in own.loads if load.name == log.name), None)
    first, stop, of, kind = _span(level, int(bins), cap)
    late = level[bins // 2 : bins] if kind == "plateau" else level[:0]
    found = Steady(int(edges_ns[first]), int(edges_ns[stop]), of, kind, float(flight_ns), late)
    if found.stop_ns - found.start_ns < LEAST_FLIGHTS * flight_ns:
        return (
            f"the load was at its {kind} of {of:.3g} requests for {(found.stop_ns - found.start_ns) / 1e9:.3g} s, and one takes"
            f" {flight_ns / 1e9:.3g} s in the middle: too short for a steady state."
        )
    return found


def _end_ns(own: Tables) -> int:
    """The last event; 0 where there was none."""
    return own.window_ns[1] if own.window_ns else 0


def _span(level: Floats, sending: int, cap: int | None) -> tuple[int, int, float, Literal["cap", "plateau"]]:
    """The first bin of the span, the one after its last, and what was reached in it; requests are sent in the first
    `sending` bins.
    """
    if cap is not None:
        high = level >= SHARE * cap
        if high[:sending].mean() >= 0.5:
            return *_longest(high), float(cap), "cap"
    low, plateau = np.quantile(level[sending // 2 : sending], (0.25, 0.5)).tolist()
    at_it = np.flatnonzero(level[:sending] >= min(SHARE * plateau, low))
    return int(at_it[0]), int(at_it[-1]) + 1, plateau, "plateau"


def _longest(high: NDArray[np.bool_]) -> tuple[int, int]:
    """The longest run of true values: its first place, and the one behind it."""
    turns = np.flatnonzero(np.diff(np.concatenate(([False], high, [False])).astype(np.int8)))
    starts, stops = turns[::2], turns[1::2]
    longest = int(np.argmax(stops - starts))
    return int(starts[longest]), int(stops[longest])


def drifts(tables: Tables, span: Steady) -> tuple[Drift, ...]:
    """Whether the level of a plateau rose or fell, and latencies, times to first token and the rate of answers over its span.

    A load that outgrows the server has no plateau, but a level like any other in the middle of its rise: so that is looked at
    over the whole second half of the time in which requests were sent.

    Latencies are means of batches of equally many successes in the order of sending, rates are over equal times. A batch has
    5 requests or more and is no shorter than half a request in flight, so that neighbours have little in common; there
    are 20 of them, or as many as there can be, and 8 at least.
    """
    sent_ns = tables.requests["sent_ns"].fill_null(-1).to_numpy()
    within = (sent_ns >= span.start_ns) & (sent_ns < span.stop_ns)
    order = np.flatnonzero(within & tables.succeeded)
    order = order[np.argsort(sent_ns[order], kind="stable")]
    done_ns = tables.requests["done_ns"].fill_null(-1).to_numpy()[tables.succeeded]
    return tuple(
        Drift(
            name,
            None,
            reason=f"too few requests: a trend takes {LEAST_BATCHES * PER_BATCH}, over 4 times as long as one takes.",
        )
        if batches is None
        else _drift(name, batches)
        for name, batches in _series(tables, span, order, done_ns)
    )


def _series(tables: Tables, span: Steady, order: Ints, done_ns: Ints) -> Iterator[tuple[str, Floats | None]]:
    if len(span.late):
        parts = np.array_split(span.late, min(BATCHES, len(span.late)))
        yield (
            "concurrency",
            np.array([part.mean() for part in parts]) if len(parts) >= LEAST_BATCHES else None,
        )
    lasts_ns = span.stop_ns - span.start_ns
    batches = min(BATCHES, len(order) // PER_BATCH, int(2 * lasts_ns / max(span.flight_ns, 1.0)))
    names = {"request_latency": tables.until_complete_ms("sent_ns")}
    if tables.streaming:
        names["time_to_first_token"] = tables.ms("sent_ns", "first_ns")
    for name, values in names.items():
        known = values[order]
        known = known[np.isfinite(known)]
        enough = batches >= LEAST_BATCHES and len(known) >= batches * PER_BATCH
        yield name, np.array([part.mean() for part in np.array_split(known, batches)]) if enough else None
    edges_ns = np.linspace(span.start_ns, span.stop_ns, max(batches, 1) + 1).astype(np.int64)
    rate = np.histogram(done_ns, edges_ns)[0] / np.diff(edges_ns) * 1e9
    yield "request_throughput", rate if batches >= LEAST_BATCHES else None


def _drift(name: str, batches: Floats) -> Drift:
    told = trend(batches)
    middle = float(np.median(batches))
    change = told.slope * (len(batches) - 1) / middle if middle > 0 else 0.0
    return Drift(name, told.p < P and abs(change) > CHANGE, change, told.p)
