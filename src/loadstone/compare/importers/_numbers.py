"""The numbers of a run from its requests, where its tool's own summary is not needed."""

from __future__ import annotations

import numpy as np

from loadstone.compare import material
from loadstone.compare.sides import LATENCIES, METRICS, STATS, Known, Requests


def of_requests(requests: Requests) -> dict[tuple[str, str], Known]:
    """Every statistic that the requests give."""
    found = {}
    for metric in METRICS:
        for stat in STATS if metric in LATENCIES else ("mean",):
            statistic = material.statistic(metric, stat, requests)
            if statistic is not None and np.isfinite(statistic.value):
                found[metric, stat] = Known(statistic.value)
    return found
