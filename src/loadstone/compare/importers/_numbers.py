"""The numbers of a run from its requests, where its tool's own summary is not needed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from loadstone.compare import material
from loadstone.compare.importers._document import measured
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


def told(
    found: Mapping[str, Any], times: Mapping[str, str], stats: Mapping[str, str], rates: Mapping[str, str]
) -> dict[tuple[str, str], Known]:
    """The statistics in a summary whose keys are `mean_ttft_ms`, and its rates; the mappings turn their words into ours."""
    keys = {f"{word}_{name}_ms": (ours, stat) for name, ours in times.items() for word, stat in stats.items()}
    keys |= {name: (ours, "mean") for name, ours in rates.items()}
    return {ours: Known(value) for key, ours in keys.items() if (value := measured(found, key)) is not None}
