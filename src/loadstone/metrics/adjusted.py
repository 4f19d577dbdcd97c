"""Adjusted for failure: latencies in which a request that failed took for ever.

A latency over successes alone gets better when a server refuses who would have waited longest. Here every request that
the server failed counts as infinite, as in AIPerf's `adj_*`; so a percentile is infinite as soon as that share of the
requests failed. Infinite is a value and not a missing one: `infinite` in the report names the statistics that are (they are
null beside it, since JSON has no such number), and summary and CSV say `inf`. Mean, max and std are infinite with the first
failure. Percentile q is the sample of rank ceil(q n), the nearest rank: nothing can be interpolated towards infinity.

A request that failed counts as infinite though its first token had come, and so does one that a time limit of ours ended, as in
error_rate. What is neither answered nor failed is left out, as it is of the plain latency: cut off with the run, cancelled,
lost by the client, never sent. The note counts those cut off.
"""

from __future__ import annotations

import numpy as np

from loadstone.figures import counted
from loadstone.metrics import Each, Missing, Samples, Tables, metric
from loadstone.metrics.latency import (
    decode_duration,
    request_latency,
    time_per_output_token_corrected,
    time_to_first_token,
)

ORDER = 15


@metric("adjusted_request_latency", unit="ms", better="lower", needs=("failure",))
def adjusted_request_latency(tables: Tables) -> Samples | Missing:
    """request_latency of every success; infinite for every request that failed.

    last - sent (without streaming done - sent), or infinity.
    """
    return _adjusted(request_latency(tables), tables)


@metric("adjusted_time_to_first_token", unit="ms", better="lower", needs=("streaming", "failure"))
def adjusted_time_to_first_token(tables: Tables) -> Samples | Missing:
    """time_to_first_token of every success; infinite for every request that failed.

    first - sent, or infinity: who got a first token and then no answer has not been served. Answers in one piece have no first
    token and are left out, failures are not; where there are many of the former the share of the latter is too high.
    """
    return _adjusted(time_to_first_token(tables), tables)


@metric("adjusted_decode_duration", unit="ms", better="lower", needs=("streaming", "failure"))
def adjusted_decode_duration(tables: Tables) -> Samples | Missing:
    """decode_duration of every success; infinite for every request that failed: last - first, or infinity."""
    return _adjusted(decode_duration(tables), tables)


@metric("adjusted_inter_token_latency", unit="ms", better="lower", needs=("streaming", "failure"))
def adjusted_inter_token_latency(tables: Tables) -> Samples | Missing:
    """Mean gap between the tokens of every success; infinite for every request that failed.

    (last - first) / (n - k0), or infinity: one value a request, as time_per_output_token_corrected, since a request that
    failed has no number of gaps to be pooled with.
    """
    return _adjusted(time_per_output_token_corrected(tables), tables)


def _adjusted(plain: Each, tables: Tables) -> Samples | Missing:
    """The values of the successes, infinity for what failed, in the order of the requests."""
    values = np.where(tables.failed, np.inf, np.where(tables.succeeded, plain.values, np.nan))
    known = values[~np.isnan(values)]
    cut = int(tables.censored.sum())
    return Samples(known, f"{counted(cut, 'request')} cut off or cancelled left out." if cut else None)
