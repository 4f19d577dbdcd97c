"""The statistics of a run that can be drawn again, from its requests."""

from __future__ import annotations

import math

import numpy as np

from loadstone.compare.sides import LATENCIES, SHARES, STATS, Floats, Requests
from loadstone.estimate.rates import LATENCIES as LEAST_LATENCIES
from loadstone.estimate.rates import Paced
from loadstone.estimate.statistic import Statistic, percentile, sums
from loadstone.stats import BEYOND

PERCENT = 100.0


def too_few(metric: str, stat: str, requests: Requests) -> int | None:
    """How many samples the percentile takes, where the run has fewer; None: it has enough."""
    q = STATS[stat]
    if q is None:
        return None
    needed = math.ceil(BEYOND / min(q, 1 - q) * (1 - 1e-9))
    values = requests.pooled[metric].values if metric in requests.pooled else requests.latencies.get(metric)
    known = 0 if values is None else int(np.isfinite(values).sum())
    return needed if known < needed else None


def count(metric: str, requests: Requests) -> int:
    """How many requests have the latency."""
    if metric in requests.pooled_sums:
        return int((requests.pooled_sums[metric][1] > 0).sum())
    values = requests.latencies.get(metric)
    return 0 if values is None else int(np.isfinite(values).sum())


def least_error(metric: str, requests: Requests) -> float:
    """The error of a share, in percentage points, had there been one more hit and one more miss.

    Where hardly anything was hit, or everything, the data have no spread (Agresti and Caffo, 2000).
    """
    hits = requests.good if metric == "goodput_attainment" else requests.failed.astype(np.float64)
    if hits is None or not np.isfinite(hits).any():
        return 0.0
    judged = int(np.isfinite(hits).sum()) + 2
    share = (float(np.nansum(hits)) + 1) / judged
    return PERCENT * math.sqrt(share * (1 - share) / judged)


def statistic(
    metric: str, stat: str, requests: Requests, *, partner: Requests | None = None
) -> Statistic | None:
    """The statistic of these requests; None where they have none. `partner`: the requests they are paired with, if so."""
    q = STATS[stat]
    if metric in requests.pooled_sums and q is None:
        above, below = requests.pooled_sums[metric]
        return sums(above, below) if np.nansum(below) > 0 else None
    if metric in requests.pooled and q is not None:
        gaps, count = requests.pooled[metric], len(requests.sent_s)
        return percentile(gaps.values, q, gaps.owners, count, gaps.weights) if len(gaps.values) else None
    if metric in LATENCIES:
        values = requests.latencies.get(metric)
        if values is None or not np.isfinite(values).any():
            return None
        if q is not None:
            return percentile(values, q)
        return sums(values, np.isfinite(values).astype(float))
    return _share(metric, requests) if metric in SHARES else _rate(metric, requests, partner)


def _share(metric: str, requests: Requests) -> Statistic | None:
    if metric == "goodput_attainment":
        if requests.good is None or not np.isfinite(requests.good).any():
            return None
        return sums(PERCENT * requests.good, np.isfinite(requests.good).astype(np.float64))
    ended = requests.succeeded | requests.failed
    return (
        sums(PERCENT * requests.failed.astype(np.float64), ended.astype(np.float64)) if ended.any() else None
    )


def ramp(requests: Requests) -> bool:
    """Whether the run is ramp and drain for the most part, so that its rates tell nothing of another run's."""
    return requests.pace is not None and requests.pace.latencies < LEAST_LATENCIES


def _rate(metric: str, requests: Requests, partner: Requests | None) -> Statistic | None:
    """What was done over the time that it took up, request by request; the drain errs beside that."""
    counts = _counted(metric, requests)
    if counts is None or len(counts) < 2 or requests.pace is None:
        return None
    return sums(np.nan_to_num(counts), requests.pace.spent, _drain_s(requests.pace, requests, partner))


def _counted(metric: str, requests: Requests) -> Floats | None:
    if metric == "goodput":
        return requests.good
    if metric == "request_throughput":
        return requests.succeeded.astype(float)
    tokens = requests.output_tokens
    if metric == "total_token_throughput":
        tokens = tokens + requests.input_tokens
    counts: Floats = np.where(requests.succeeded, tokens, 0.0)
    return counts if np.isfinite(counts).any() and np.nansum(counts) > 0 else None


def _drain_s(pace: Paced, requests: Requests, partner: Requests | None) -> float:
    """By how much the drain may take longer or shorter in another run, in seconds.

    In an open loop the last answers of a partner are the same: as much as one latency differs from the partner's. A closed loop
    has others at its end, so partners tell nothing of each other.
    """
    if partner is None or pace.by_ends:
        return pace.drain * float(pace.spent.sum())
    mine, theirs = (side.latencies.get("request_latency") for side in (requests, partner))
    if mine is None or theirs is None:
        return 0.0
    apart = (mine - theirs)[np.isfinite(mine - theirs)]
    return float(apart.std()) / 1000 if len(apart) else 0.0
