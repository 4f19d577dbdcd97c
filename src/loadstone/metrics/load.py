"""Load: what was offered, what was sent, and what was under way."""

from __future__ import annotations

import numpy as np
import polars as pl

from loadstone.figures import counted
from loadstone.metrics import Missing, Number, Result, Samples, Tables, metric
from loadstone.read.outcome import CLIENT_FAULT
from loadstone.stats import weighted

ORDER = 50


@metric("request_count", unit="requests", better="neither", needs=("attempt",))
def request_count(tables: Tables) -> Result:
    """Requests that succeeded (AIPerf's name)."""
    return float(tables.succeeded.sum())


@metric("error_rate", unit="%", better="lower", needs=("attempt",))
def error_rate(tables: Tables) -> Result:
    """Share of requests that ended badly, through the server: those that failed / (failed + succeeded).

    A request that was cut off with the run (`cut`, `cancelled`) and one that the client itself lost
    (`client-fault`) say nothing of the server and are neither; the note counts them. One that a time limit ended is a
    failure. Requests that were never sent are no errors of the server; the outcomes list them.
    """
    left_out = _left_out(tables)
    failed, good = int(tables.failed.sum()), int(tables.succeeded.sum())
    if not failed + good:
        return Missing(f"every request is left out: {left_out}.")
    return Number(100 * failed / (failed + good), f"{left_out} left out." if left_out else None)


def _left_out(tables: Tables) -> str:
    """The requests that were neither answered nor failed by the server, in words; empty when there were none."""
    censored = int(tables.censored.sum())
    lost = int((tables.requests["outcome"] == CLIENT_FAULT).sum())
    parts = [
        f"{counted(censored, 'request')} cut off" if censored else "",
        f"{counted(lost, 'request')} lost by the client" if lost else "",
    ]
    return " and ".join(filter(None, parts))


@metric("benchmark_duration", unit="s", better="neither", needs=("attempt", "window"))
def benchmark_duration(tables: Tables) -> Result:
    """The window: from the first send to the last event of the measured phase, failures included."""
    return tables.window_s


@metric("concurrency", unit="requests", better="neither", needs=("attempt", "window"))
def concurrency(tables: Tables) -> Result:
    """Requests in flight over the window, weighted by time.

    A request is in flight from `sent` to `done`. The mean is the area under the curve / window; percentile q
    is the level not exceeded for that share of the time. `count` is the number of stretches of one level.
    """
    sent_ns, left_ns = _flights(tables)
    moments = np.concatenate((sent_ns, left_ns))
    order = np.argsort(moments, kind="stable")
    step = np.repeat((1, -1), len(sent_ns))[order]
    lasted_ns = np.diff(moments[order])
    levels = np.cumsum(step)[:-1][lasted_ns > 0].astype(float)
    # In nanoseconds, so that one sample's width, over which percentiles are averaged, is nothing.
    return Samples(weighted(levels, lasted_ns[lasted_ns > 0].astype(float)), counted=len(levels))


@metric("offered_rate", unit="requests/s", better="neither", needs=("rate",))
def offered_rate(tables: Tables) -> Result:
    """The rate at which requests were due: (n - 1) / (last due - first due), requests never sent included."""
    return _rate(tables.requests["due_ns"])


@metric("sent_rate", unit="requests/s", better="neither", needs=("attempt",))
def sent_rate(tables: Tables) -> Result:
    """The rate at which requests were sent: (n - 1) / (last sent - first sent)."""
    return _rate(tables.requests["sent_ns"])


@metric("completed_rate", unit="requests/s", better="neither", needs=("success",))
def completed_rate(tables: Tables) -> Result:
    """The rate at which answers were complete: (n - 1) / (last done - first done), successes only.

    Beside request_throughput it leaves out the time before the first answer, so in a short run it is the
    fairer match for the rate offered.
    """
    return _rate(tables.requests["done_ns"].filter(pl.Series(tables.succeeded)))


def _flights(tables: Tables) -> tuple[np.ndarray, np.ndarray]:
    """Send and end of every request sent, the end not after the window's."""
    frame = tables.requests.select("sent_ns", tables.left_ns.alias("left_ns")).drop_nulls()
    window_end = tables.window_ns[1] if tables.window_ns else 0
    return frame["sent_ns"].to_numpy(), np.minimum(frame["left_ns"].to_numpy(), window_end)


def _rate(moments_ns: pl.Series) -> float | Missing:
    """Events of a sequence per second of the time between its first and last."""
    known = moments_ns.drop_nulls()
    first, last = known.min(), known.max()
    if not isinstance(first, int) or not isinstance(last, int) or last <= first:
        return Missing("a rate needs two requests at different moments.")
    return (len(known) - 1) * 1e9 / (last - first)
