"""The largest rate that one replica sustains within the objectives, and with which flags.

Bisection over trials on the virtual clock, all with the same requests, so that a higher rate is never kinder. What cannot be
better than what is known already is found out by one trial.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from loadstone.capacity.trial import Trial, trial
from loadstone.capacity.workload import Workload
from loadstone.sim.build import deployment
from loadstone.sim.options import SimOptions
from loadstone.slo import Objective

LEAST_REQUESTS = 2_000
MOST_REQUESTS = 20_000
MOST_FLEET_REQUESTS = 100_000
LIFETIMES = 20
"""A trial lasts as long as so many requests behind each other, so that a fleet that fills up has time to do so."""
RESOLUTION = 1.02
"""The rate found is within this factor of the largest one."""
IDLE_SHARE = 0.01
"""Of what a replica could do at most: at this rate requests hardly meet."""
BETTER = 1.02
"""Other flags have to bring this much to be chosen."""


class Question(NamedTuple):
    """What is asked of one replica."""

    workload: Workload
    objectives: Sequence[Objective]
    seed: int = 0
    most_requests: int = MOST_REQUESTS


class Capacity(NamedTuple):
    """What one replica can do. `rate` 0: not even one request at a time keeps the objectives, and `idle` shows it."""

    options: SimOptions
    rate: float
    trials: list[Trial]
    """All trials with these flags, by rate."""
    idle: Trial

    @property
    def at(self) -> Trial | None:
        """The trial at the rate found."""
        return next((one for one in self.trials if one.rate == self.rate), None)


class Replica:
    """Trials of one setup with one set of flags."""

    def __init__(self, question: Question, options: SimOptions) -> None:
        self.options = options
        self._question = question
        self._trials: dict[float, Trial] = {}
        self.ceiling = self._throughput()
        """Requests a second when as many wait as it can take: no rate above is sustained."""

    @property
    def trials(self) -> list[Trial]:
        """All so far, by rate."""
        return [self._trials[rate] for rate in sorted(self._trials)]

    def try_rate(self, rate: float) -> Trial:
        """A trial at this rate; one that was made is not repeated."""
        if rate not in self._trials:
            self._trials[rate] = self._run(rate, self._count(rate))
        return self._trials[rate]

    def keeps(self, rate: float) -> bool:
        """Whether the objectives are kept at this rate."""
        return self.try_rate(rate).keeps(self._question.objectives)

    def _run(self, rate: float, count: int) -> Trial:
        asked = self._question
        return trial(deployment(self.options), asked.workload, rate, count, asked.objectives, asked.seed)

    def _throughput(self) -> float:
        burst = self._run(1e9, LEAST_REQUESTS)
        return burst.output_tokens_s / max(1, self._question.workload.osl)

    def _count(self, rate: float) -> int:
        """Requests of a trial: enough for the percentiles, and for `LIFETIMES` of a request at this rate."""
        alone = [one for one in self.trials if one.rate < rate]
        latency_ms = alone[-1].values["request_latency", "p50"] if alone else None
        wanted = math.ceil(rate * (latency_ms or 1e3) / 1e3 * LIFETIMES)
        return min(max(LEAST_REQUESTS, wanted), self._question.most_requests)


def capacity(question: Question, choices: Sequence[SimOptions]) -> Capacity:
    """The best of several sets of flags for one replica; the first of those that are equally good."""
    best: Capacity | None = None
    for options in choices:
        replica = Replica(question, options)
        idle = replica.try_rate(replica.ceiling * IDLE_SHARE)
        found = Capacity(options, 0.0, replica.trials, idle)
        if idle.keeps(question.objectives):
            floor = idle.rate if best is None else best.rate * BETTER
            rate = _largest(replica, floor) if best is None or _may_beat(replica, floor) else 0.0
            found = Capacity(options, rate, replica.trials, idle)
        if best is None or found.rate > best.rate:
            best = found
    assert best is not None, "there is a choice of flags"
    return best


def _may_beat(replica: Replica, rate: float) -> bool:
    return rate < replica.ceiling and replica.keeps(rate)


def _largest(replica: Replica, kept: float) -> float:
    """The largest rate that is kept, from one that is; by halving the ratio to one that is not."""
    missed = replica.ceiling * RESOLUTION
    while missed / kept > RESOLUTION:
        rate = math.sqrt(missed * kept) if missed / kept > 4 else (missed + kept) / 2
        if replica.keeps(rate):
            kept = rate
        else:
            missed = rate
    return kept


def curve(found: Capacity, question: Question, points: int = 8) -> list[Trial]:
    """Trials at evenly spaced rates up to the one found and one step beyond it: the curve behind the answer."""
    replica = Replica(question, found.options)
    return [replica.try_rate(found.rate * number / points) for number in range(1, points + 2)]


def fleet_trial(question: Question, options: SimOptions, replicas: int, rate: float) -> Trial:
    """The whole load on so many replicas behind one router."""
    together = msgspec.structs.replace(options, data_parallel_size=replicas)
    count = min(max(LEAST_REQUESTS * replicas, LEAST_REQUESTS), MOST_FLEET_REQUESTS)
    return trial(deployment(together), question.workload, rate, count, question.objectives, question.seed)


def fewest(question: Question, found: Capacity, rate: float) -> tuple[int, Trial]:
    """The fewest replicas that together keep the objectives at a rate, and the trial of them.

    A router deals arrivals out more evenly than chance, so it may take fewer than one replica's rate says. Never more than
    one in ten more: then the objectives are as good as lost to chance, and that trial is returned as it is.
    """
    alone = max(1, math.ceil(rate / found.rate))
    least = max(1, math.ceil(rate / Replica(question, found.options).ceiling))
    most = alone
    last = fleet_trial(question, found.options, most, rate)
    while not last.keeps(question.objectives) and most < math.ceil(alone * 1.1) + 1:
        least, most = most + 1, most + 1
        last = fleet_trial(question, found.options, most, rate)
    while least < most:
        middle = (least + most) // 2
        tried = fleet_trial(question, found.options, middle, rate)
        if tried.keeps(question.objectives):
            most, last = middle, tried
        else:
            least = middle + 1
    return most, last
