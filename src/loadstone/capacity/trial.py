"""One trial: a workload at one rate on some engines, on the virtual clock, and how long its users waited.

The first tenth of the requests, which finds the engines empty, is not measured, nor the last, which sees them empty again.
Waits count from arrival; a token arrives at the end of its step; there is no network.
"""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Iterator
from collections.abc import Sequence as Rows
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from loadstone.capacity.workload import Dealt, Workload, requests
from loadstone.clock import SECOND_NS
from loadstone.errors import UsageError
from loadstone.sim.deployment import Deployment
from loadstone.sim.drive import drive
from loadstone.sim.engine import TooLong
from loadstone.sim.sequence import Sequence
from loadstone.slo import TIME, Objective

FIRST, FIRST_GAP = "time_to_first_token", "inter_token_latency"
MEAN_GAP, WHOLE = "time_per_output_token", "request_latency"
METRICS = dict.fromkeys((FIRST, FIRST_GAP, MEAN_GAP, WHOLE), TIME)
"""What can be an objective."""
USUAL = "p99"
"""The statistic of an objective that names none: a plan has no requests of yours to hold one by one against a limit."""
OF_GAPS = (FIRST_GAP, MEAN_GAP)
"""Those that an answer of one token does not have."""
EDGE_SHARE = 0.1
"""Of the requests so many at either end are not measured."""
GROWTH = 0.01
"""Of the requests of half a trial so many may pile up without its being told from chance."""
MOST_GAPS = 4_000_000
"""With more, only those of every second, third, ... request are kept."""
SHOWN = tuple((metric, stat) for metric in METRICS for stat in ("p50", "p99"))
"""What a curve shows whatever the objectives are."""

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]


class Trial(NamedTuple):
    """How a rate went. Values by metric and statistic, in ms; None where no request has the metric."""

    rate: float
    """Requests a second, of all engines that were simulated."""
    requests: int
    values: dict[tuple[str, str], float | None]
    sustained: bool
    """Requests did not pile up, but for what chance explains."""
    engines: int
    """That were simulated."""
    running: float
    """Mean number of requests in the batch of one engine."""
    output_tokens_s: float
    """That came out, of one engine."""
    hit_share: float | None
    """Of the tokens of prompts, those found in the prefix cache; None: none were looked for."""
    preemptions: int
    complete: bool = True
    """False: it was given up when nothing to come could have kept the objectives any more."""

    def broken(self, objectives: Rows[Objective]) -> list[Objective]:
        """Objectives that were not kept; one that no request has a value for is none that was."""
        found = ((one, self.values[one.metric, one.stat]) for one in objectives)
        return [one for one, value in found if value is None or not value < one.limit]

    def keeps(self, objectives: Rows[Objective]) -> bool:
        """Whether the rate was sustained and every objective kept."""
        return self.complete and self.sustained and not self.broken(objectives)


def trial(
    deployment: Deployment[Sequence],
    asked: Workload,
    rate: float,
    count: int,
    objectives: Rows[Objective],
    *,
    seed: int = 0,
    dealt: Dealt | None = None,
    to_the_end: bool = True,
) -> Trial:
    """Serves `count` requests at `rate` a second; the deployment has to be fresh.

    `dealt`: the engines are some of many, see `requests`. Without `to_the_end` a trial is given up as soon as it is certain
    that an objective is not kept. UsageError: a request that the engine could never serve.
    """
    size = deployment.engines[0].limits.block_size
    edge = math.floor(count * EDGE_SHARE)
    waits = _Waits(count - 2 * edge, asked, objectives)
    fleet = _Arrivals(requests(asked, rate, count, size, seed, dealt), waits, edge, count - edge)
    complete = True
    try:
        for end_ns, sequence in drive(deployment, fleet):
            fleet.left(end_ns, sequence)
            if not to_the_end and waits.hopeless:
                complete = False
                break
    except TooLong as error:
        raise UsageError(f"--workload: a request has {error}.") from None
    engines = deployment.all
    queries = sum(engine.prefix_queries for engine in engines)
    starts, ends, tokens = (
        np.frombuffer(kept, np.int64) for kept in (fleet.starts, fleet.ends, fleet.tokens)
    )
    first_ns = int(starts[min(edge, len(starts) - 1)])
    inside = (ends >= first_ns) & (ends <= starts[-1])
    lasted_s = max(int(starts[-1]) - first_ns, 1) / SECOND_NS
    measured_ns = max(int(starts[min(count - edge, len(starts)) - 1]) - first_ns, 1)
    return Trial(
        rate=rate,
        requests=count,
        values=waits.values({*((one.metric, one.stat) for one in objectives), *SHOWN}),
        sustained=complete and sustained(starts, np.sort(ends)),
        engines=len(engines),
        running=waits.busy_ns / measured_ns / len(engines),
        output_tokens_s=float(tokens[inside].sum()) / lasted_s / len(engines),
        hit_share=sum(engine.prefix_hits for engine in engines) / queries if queries else None,
        preemptions=sum(engine.preemptions for engine in engines),
        complete=complete,
    )


class _Arrivals:
    """Requests on their way in and out; none is kept longer than it is served."""

    def __init__(self, made: Iterator[tuple[int, Sequence]], waits: _Waits, first: int, end: int) -> None:
        self.starts, self.ends, self.tokens = array("q"), array("q"), array("q")
        self._made = made
        self._waits = waits
        self._measured = range(first, end)
        self._came: dict[Sequence, tuple[int, int]] = {}

    def __iter__(self) -> Iterator[tuple[int, Sequence]]:
        for number, (at_ns, sequence) in enumerate(self._made):
            self.starts.append(at_ns)
            self._came[sequence] = (number, at_ns)
            yield at_ns, sequence

    def left(self, end_ns: int, sequence: Sequence) -> None:
        """A request has its last token."""
        self.ends.append(end_ns)
        self.tokens.append(sequence.output_tokens)
        number, at_ns = self._came.pop(sequence)
        if number in self._measured:
            self._waits.note(number, at_ns, sequence)


class _Waits:
    """The waits of so many requests, as they end."""

    def __init__(self, count: int, asked: Workload, objectives: Rows[Objective]) -> None:
        self.hopeless = False
        """An objective is not kept whatever else comes."""
        self.busy_ns = 0
        """In batches, all together."""
        self._first: list[int] = []
        self._whole: list[int] = []
        self._mean_gap: list[float] = []
        self._gaps: list[Whole] = []
        gaps = count * (asked.osl + asked.osl_stddev)
        self._every = math.ceil(gaps / MOST_GAPS)
        self._limits = [
            (one.metric, one.limit * 1e6, _beyond(one.stat, gaps if one.metric == FIRST_GAP else count))
            for one in objectives
        ]
        self._over: Counter[str] = Counter()

    def note(self, number: int, at_ns: int, sequence: Sequence) -> None:
        """A request that came at `at_ns` has ended."""
        times = np.frombuffer(sequence.times(), np.int64)
        first, whole = int(times[0]) - at_ns, int(times[-1]) - at_ns
        self._first.append(first)
        self._whole.append(whole)
        if sequence.scheduled_ns is not None:
            self.busy_ns += int(times[-1]) - sequence.scheduled_ns
        gaps, mean_gap = None, 0.0
        if len(times) > 1:
            mean_gap = (int(times[-1]) - int(times[0])) / (len(times) - 1)
            self._mean_gap.append(mean_gap)
            if number % self._every == 0:
                gaps = np.diff(times)
                self._gaps.append(gaps)
        for metric, limit_ns, most in self._limits:
            if metric != FIRST_GAP:
                over = {FIRST: first, WHOLE: whole, MEAN_GAP: mean_gap}[metric] >= limit_ns
                self._over[metric] += over
            elif gaps is not None:
                self._over[metric] += int(np.count_nonzero(gaps >= limit_ns)) * self._every
            if self._over[metric] > most:
                self.hopeless = True

    def values(self, wanted: set[tuple[str, str]]) -> dict[tuple[str, str], float | None]:
        """The statistics in ms; None where there is nothing to take them of: answers of one token have no gaps."""
        by_metric: dict[str, Rows[float] | Whole] = {
            FIRST: self._first,
            WHOLE: self._whole,
            MEAN_GAP: self._mean_gap,
            FIRST_GAP: np.concatenate(self._gaps) if self._gaps else (),
        }
        found: dict[tuple[str, str], float | None] = {}
        for metric, values in by_metric.items():
            stats = sorted(stat for other, stat in wanted if other == metric)
            found |= {(metric, stat): value for stat, value in zip(stats, _statistics(values, stats), strict=True)}  # fmt: skip
        return found


def _beyond(stat: str, count: int) -> float:
    """As many of so many may be beyond a limit without the statistic's being so for certain; inf where none says."""
    share = _share(stat)
    return math.inf if share is None else (1 - share / 100) * count + 1


def _share(stat: str) -> float | None:
    """The percentile that a statistic is."""
    return {"min": 0.0, "max": 100.0, "mean": None}[stat] if stat in ("min", "max", "mean") else float(stat[1:].replace("_", "."))  # fmt: skip


def _statistics(values: Rows[float] | Whole, stats: Rows[str]) -> list[float | None]:
    if not len(values):
        return [None] * len(stats)
    taken = np.asarray(values)
    shares = [_share(stat) for stat in stats]
    percentiles = iter(np.percentile(taken, [share for share in shares if share is not None]).tolist())
    return [(float(taken.mean()) if share is None else next(percentiles)) / 1e6 for share in shares]


def sustained(starts: Whole, ends: Whole) -> bool:
    """Whether as many were in the system in the last quarter of the arrivals as in the second, but for chance.

    Both in order. In a stable queue the difference is of the order of the square root of what is in it; at a rate of
    r times what is served it is 1 - 1 / r of the arrivals of half a trial.
    """
    inside = np.arange(1, len(starts) + 1) - np.searchsorted(ends, starts, "right")
    quarter = len(starts) // 4
    before, after = inside[quarter : 2 * quarter].mean(), inside[3 * quarter :].mean()
    return bool(after - before <= GROWTH * len(starts) / 2 + 2 * math.sqrt(max(before, 1)))
