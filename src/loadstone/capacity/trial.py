"""One trial: a workload at one rate on a deployment, on the virtual clock, and how long its users waited.

What comes before the fleet has filled up is left out: the first tenth of the requests. A rate is sustained when no backlog
grows. Waits count from arrival; a token arrives at the end of its step; there is no network.
"""

from __future__ import annotations

import math
from collections.abc import Sequence as Rows
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from loadstone.capacity.workload import Workload, requests
from loadstone.clock import SECOND_NS
from loadstone.sim.deployment import Deployment
from loadstone.sim.drive import drive
from loadstone.sim.sequence import Sequence
from loadstone.slo import Objective

METRICS = ("time_to_first_token", "inter_token_latency", "time_per_output_token", "request_latency")
FILLING_SHARE = 0.1
"""The first requests, which find the fleet empty, are not measured."""
GROWTH = 0.03
"""Of the requests of the second half of a trial so many more may be in the system at its end than in its middle."""

Floats = NDArray[np.float64]


class Trial(NamedTuple):
    """How a rate went. Values by metric and statistic, in ms; None where no request has the metric."""

    rate: float
    requests: int
    values: dict[tuple[str, str], float | None]
    sustained: bool
    """The requests in the system grew no further than chance explains."""
    running: float
    """Mean number of requests in the batches of one engine."""
    output_tokens_s: float
    hit_share: float | None
    """Of the tokens of prompts, those found in the prefix cache; None: none were looked for."""
    preemptions: int

    def broken(self, objectives: Rows[Objective]) -> list[Objective]:
        """Objectives that were not kept; one that no request has a value for is."""
        found = ((one, self.values[one.metric, one.stat]) for one in objectives)
        return [one for one, value in found if value is not None and not value < one.limit_ms]

    def keeps(self, objectives: Rows[Objective]) -> bool:
        """Whether the rate was sustained and every objective kept."""
        return self.sustained and not self.broken(objectives)


def trial(
    deployment: Deployment[Sequence],
    asked: Workload,
    rate: float,
    count: int,
    objectives: Rows[Objective],
    seed: int = 0,
) -> Trial:
    """Serves `count` requests at `rate` a second; the deployment has to be fresh. Raises `TooLong`."""
    size = deployment.engines[0].limits.block_size
    made = list(requests(asked, rate, count, size, seed))
    came = {id(sequence): at_ns for at_ns, sequence in made}
    starts = np.array([at_ns for at_ns, _ in made], np.int64)
    ends: list[int] = []
    first_ns = int(starts[math.floor(count * FILLING_SHARE)])
    waits = _Waits()
    busy_ns = 0
    for end_ns, sequence in drive(deployment, made):
        ends.append(end_ns)
        at_ns = came[id(sequence)]
        if sequence.scheduled_ns is not None:
            busy_ns += end_ns - sequence.scheduled_ns
        if at_ns >= first_ns:
            waits.note(at_ns, sequence)
    engines = deployment.all
    lasted_ns = max(1, ends[-1] - int(starts[0]))
    queries = sum(engine.prefix_queries for engine in engines)
    return Trial(
        rate=rate,
        requests=count,
        values=waits.values({*((one.metric, one.stat) for one in objectives), *SHOWN}),
        sustained=_sustained(starts, np.array(ends, np.int64)),
        running=busy_ns / lasted_ns / len(engines),
        output_tokens_s=sum(sequence.output_tokens for _, sequence in made) / lasted_ns * SECOND_NS,
        hit_share=sum(engine.prefix_hits for engine in engines) / queries if queries else None,
        preemptions=sum(engine.preemptions for engine in engines),
    )


SHOWN = tuple((metric, stat) for metric in METRICS for stat in ("p50", "p99"))
"""What a curve shows whatever the objectives are."""


class _Waits:
    """The waits of the requests that have ended."""

    def __init__(self) -> None:
        self._first: list[int] = []
        self._whole: list[int] = []
        self._mean_gap: list[float] = []
        self._gaps: list[NDArray[np.int64]] = []

    def note(self, at_ns: int, sequence: Sequence) -> None:
        """A request that came at `at_ns` has ended."""
        times = np.frombuffer(sequence.times(), np.int64)
        self._first.append(int(times[0]) - at_ns)
        self._whole.append(int(times[-1]) - at_ns)
        if len(times) > 1:
            self._gaps.append(np.diff(times))
            self._mean_gap.append(float(times[-1] - times[0]) / (len(times) - 1))

    def values(self, wanted: set[tuple[str, str]]) -> dict[tuple[str, str], float | None]:
        """The statistics in ms; None where there is nothing to take them of: answers of one token have no gaps."""
        by_metric = {
            "time_to_first_token": self._first,
            "request_latency": self._whole,
            "time_per_output_token": self._mean_gap,
            "inter_token_latency": np.concatenate(self._gaps) if self._gaps else [],
        }
        arrays = {metric: np.asarray(values, np.float64) / 1e6 for metric, values in by_metric.items()}
        return {(metric, stat): _statistic(arrays[metric], stat) for metric, stat in sorted(wanted)}


def _statistic(values: Floats, stat: str) -> float | None:
    if not len(values):
        return None
    if stat == "mean":
        return float(values.mean())
    share = {"min": 0.0, "max": 100.0}.get(stat)
    return float(np.percentile(values, float(stat[1:].replace("_", ".")) if share is None else share))


def _sustained(starts: NDArray[np.int64], ends: NDArray[np.int64]) -> bool:
    """Whether as many were in the system at the last arrival as in the middle, but for chance.

    In a queue that is stable the difference is of the order of the square root of what is in it.
    """
    ends = np.sort(ends)
    middle = len(starts) // 2
    in_middle = middle + 1 - int(np.searchsorted(ends, starts[middle], "right"))
    at_end = len(starts) - int(np.searchsorted(ends, starts[-1], "right"))
    return at_end - in_middle <= GROWTH * (len(starts) - middle) + 3 * math.sqrt(max(in_middle, 1))
