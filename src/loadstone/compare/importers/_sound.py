"""Whether the numbers of a run can be measurements at all; one that cannot speaks against the whole file."""

from __future__ import annotations

import numpy as np

from loadstone.compare.importers._document import Damaged
from loadstone.compare.sides import LATENCIES, SHARES, STATS, Floats, Known, Requests, Run

MOST = 1e12
"""No number of a run is larger: 1e12 ms are 31 years."""
NEVER_ZERO = ("time_to_first_token", "request_latency")
"""Latencies whose mean is above 0; gaps may all be 0, where tokens come together."""
PERCENT = 100.0


def sound(run: Run) -> Run:
    """The same run. Raises `Damaged` with the first number of it that cannot be."""
    if run.requests is not None:
        _requests(run.requests)
    for (metric, stat), known in run.numbers.items():
        _statistic(metric, stat, known)
    return run


def _statistic(metric: str, stat: str, known: Known) -> None:
    name = metric if metric not in LATENCIES else f"{metric}.{stat}"
    if not 0 <= known.value <= (PERCENT if metric in SHARES else MOST):
        raise Damaged(f"{name} is {known.value:g}, which cannot be")
    if metric in NEVER_ZERO and STATS[stat] is None and known.value == 0:
        raise Damaged(f"{name} is 0, which no mean latency can be")
    if known.low is None or known.high is None:
        return
    if known.low > known.high:
        raise Damaged(f"the interval of {name} ends at {known.high:g}, before it begins, at {known.low:g}")
    if max(abs(known.low), abs(known.high)) > MOST:
        raise Damaged(f"the interval of {name} is from {known.low:g} to {known.high:g}, which cannot be")


def _requests(requests: Requests) -> None:
    columns = {
        **requests.latencies,
        **{name: gaps.values for name, gaps in requests.pooled.items()},
        "the time of sending": requests.sent_s,
        "the number of output tokens": requests.output_tokens,
        "the number of input tokens": requests.input_tokens,
    }
    for name, values in columns.items():
        _column(name, values)


def _column(name: str, values: Floats) -> None:
    wrong = values[~np.isnan(values) & ~((values >= 0) & (values <= MOST))]
    if len(wrong):
        raise Damaged(f"{name} of a request is {wrong[0]:g}, which cannot be")
