"""Load: what was offered, what was sent, and what was under way.

A request is *offered* when it is due, whether it is sent or not: offered = sent + due and never sent + lost by the client
before it was sent. A turn that
follows another one is due when that one has ended, its think time later; if it never ended, the turn was never due.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import polars as pl
from numpy.typing import NDArray

from loadstone.figures import counted
from loadstone.metrics import Missing, Number, Result, Samples, Tables, metric
from loadstone.metrics._sweep import levels
from loadstone.metrics.instrument import late_ms
from loadstone.read.outcome import CLIENT_FAULT
from loadstone.stats import weighted

ORDER = 50
LATE_MS = 5.0
"""A request sent later than this is late. Less does not change an arrival pattern that a server could notice."""

Ints = NDArray[np.int64]


@metric("request_count", unit="requests", better="neither", needs=("attempt",))
def request_count(tables: Tables) -> Result:
    """Requests that succeeded (AIPerf's name)."""
    return float(tables.succeeded.sum())


@metric("offered_count", unit="requests", better="neither", needs=("rate", "plan"))
def offered_count(tables: Tables) -> Result:
    """Requests that were due: sent_count + queued_count, and those that the client lost before it sent them."""
    return float(np.sum(tables.attempted | tables.lost | tables.unsent))


@metric("sent_count", unit="requests", better="neither", needs=("plan",))
def sent_count(tables: Tables) -> Result:
    """Requests that were sent, or for which that was tried: neither `not-sent` nor lost with a worker that died."""
    return float(tables.attempted.sum())


@metric("queued_count", unit="requests", better="lower", needs=("rate", "plan"))
def queued_count(tables: Tables) -> Result:
    """Requests that were due and never sent: they waited at the client until their phase sent nothing any more.

    For a slot, for a client that did not keep up, or for the turn before them.
    """
    return float(tables.unsent.sum())


@metric("late_count", unit="requests", better="lower", needs=("no cap", "attempt"))
def late_count(tables: Tables) -> Result:
    """Requests that the client sent more than 5 ms late, the time it took to connect left out.

    Late is what is sent after both its due time (in a closed loop the moment the slot freed) and the end of the turn
    before it.
    """
    return float((late_ms(tables) > LATE_MS).sum())


@metric("error_rate", unit="%", better="lower", needs=("attempt",))
def error_rate(tables: Tables) -> Result:
    """Share of requests that ended badly, through the server: those that failed / (failed + succeeded).

    A request that was cut off with the run (`cut`, `cancelled`) or because the plan said so (`cancelled-as-planned`) and
    one that the client itself lost (`client-fault`) say nothing of the server and are neither; the note counts them. One
    that a time limit ended is a failure. Requests that were never sent are no errors of the server; the outcomes list
    them.
    """
    left_out = _left_out(tables)
    failed, good = int(tables.failed.sum()), int(tables.succeeded.sum())
    if not failed + good:
        return Missing(f"every request is left out: {left_out}.")
    order = tables.sending_order[(tables.failed | tables.succeeded)[tables.sending_order]]
    note = f"{left_out} left out." if left_out else None
    return Number(100 * failed / (failed + good), note, hits=tables.failed[order])


def _left_out(tables: Tables) -> str:
    """The requests that were neither answered nor failed by the server, in words; empty when there were none."""
    cut = int((tables.censored & ~tables.cancelled).sum())
    asked = int(tables.cancelled.sum())
    lost = int((tables.requests["outcome"] == CLIENT_FAULT).sum())
    parts = [
        f"{counted(cut, 'request')} cut off" if cut else "",
        f"{counted(asked, 'request')} cancelled as asked" if asked else "",
        f"{counted(lost, 'request')} lost by the client" if lost else "",
    ]
    *first, last = list(filter(None, parts)) or [""]
    return f"{', '.join(first)}{' and ' if first else ''}{last}"


@metric("benchmark_duration", unit="s", better="neither", needs=("attempt", "window"))
def benchmark_duration(tables: Tables) -> Result:
    """The window: from the first send to the last event of the measured phases, failures included.

    Of phases between which nothing was measured it is the sum of theirs.
    """
    return tables.window_s


@metric("concurrency", unit="requests", better="neither", needs=("attempt", "window"))
def concurrency(tables: Tables) -> Samples | Missing:
    """Requests in flight over the window, weighted by time.

    A request is in flight from `sent` to `done`. The mean is the area under the curve / window; percentile q
    is the level not exceeded for that share of the time. `count` is the number of stretches of one level. AIPerf calls
    it effective_concurrency.
    """
    return _over_time(
        (*_present(stretch.requests["sent_ns"], stretch.left_ns), stretch.window_ns)
        for stretch in tables.stretches
        if stretch.window_ns
    )


@metric("queue_depth", unit="requests", better="lower", needs=("rate", "attempt", "window"))
def queue_depth(tables: Tables) -> Samples | Missing:
    """Requests that were due and not yet sent, over the window, weighted by time.

    A request is in the queue from `due` to `sent`; one never sent until it was given up, or its phase sent nothing any
    more: after its stop, with --drain-queue (or without a limit) at its end. The statistics are those of concurrency: the
    mean is the area under the curve / window.
    """
    return _over_time(
        (*_present(stretch.requests["due_ns"], stretch.left_queue_ns), stretch.window_ns)
        for stretch in tables.stretches
        if stretch.window_ns
    )


@metric("offered_rate", unit="requests/s", better="neither", needs=("rate",))
def offered_rate(tables: Tables) -> Result:
    """The rate at which requests were due: (n - 1) / (last due - first due), requests never sent included."""
    return _rate(stretch.requests["due_ns"] for stretch in tables.stretches)


@metric("sent_rate", unit="requests/s", better="neither", needs=("attempt",))
def sent_rate(tables: Tables) -> Result:
    """The rate at which requests were sent: (n - 1) / (last sent - first sent)."""
    return _rate(stretch.requests["sent_ns"] for stretch in tables.stretches)


@metric("completed_rate", unit="requests/s", better="neither", needs=("success",))
def completed_rate(tables: Tables) -> Result:
    """The rate at which answers were complete: (n - 1) / (last done - first done), successes only.

    Beside request_throughput it leaves out the time before the first answer, so in a short run it is the
    fairer match for the rate offered.
    """
    return _rate(
        stretch.requests["done_ns"].filter(pl.Series(stretch.succeeded)) for stretch in tables.stretches
    )


def _present(came_ns: pl.Series, went_ns: pl.Series) -> tuple[Ints, Ints]:
    """Where both are known."""
    both = pl.DataFrame({"came": came_ns, "went": went_ns}).drop_nulls()
    return both["came"].to_numpy(), both["went"].to_numpy()


def _over_time(stretches: Iterable[tuple[Ints, Ints, tuple[int, int]]]) -> Samples:
    """How many of something there were, weighted by time: when each came and went, and the window that is looked at."""
    found = (levels(came_ns, went_ns, window_ns) for came_ns, went_ns, window_ns in stretches)
    # In nanoseconds, so that one sample's width, over which percentiles are averaged, is nothing.
    pool = np.concatenate([weighted(level.number, level.lasted_ns) for level in found])
    return Samples(pool, counted=len(pool))


def _rate(stretches: Iterable[pl.Series]) -> float | Missing:
    """Events of a sequence per second of the time between its first and last; of several sequences, over all of them."""
    events, lasted_ns = 0, 0
    for moments_ns in stretches:
        known = moments_ns.drop_nulls()
        first, last = known.min(), known.max()
        if isinstance(first, int) and isinstance(last, int) and last > first:
            events += len(known) - 1
            lasted_ns += last - first
    return (
        events * 1e9 / lasted_ns if lasted_ns else Missing("a rate needs two requests at different moments.")
    )
