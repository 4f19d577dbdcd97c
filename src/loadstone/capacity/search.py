"""The largest rate that one replica sustains within the objectives, with which flags, and how many replicas a load needs.

Trials on the virtual clock, by bisection. A replica is tried with the arrivals that a router which deals them out in turn
leaves it: the more replicas there are, the more evenly they come.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from loadstone.capacity.trial import Trial, trial
from loadstone.capacity.workload import Dealt, Workload, requests
from loadstone.clock import SECOND_NS
from loadstone.sim.build import deployment
from loadstone.sim.deployment import Deployment
from loadstone.sim.drive import drive
from loadstone.sim.engine import Engine
from loadstone.sim.options import SimOptions
from loadstone.sim.sequence import Sequence as Request
from loadstone.slo import Objective

ALONE_REQUESTS = 400
ALONE_RATE = 1e-4
"""Requests a second that never meet."""
BURST_REQUESTS = 400
LEAST_REQUESTS = 2_000
MOST_REQUESTS = 20_000
FLEET_LENGTH = 3
"""The trial of a fleet is so many times as long."""
MOST_FLEET_REQUESTS = 80_000
LIFETIMES = 20
"""A trial lasts as long as so many requests behind each other, so that a replica that fills up has time to do so."""
ENOUGH = 1.3
"""A trial that is too short by no more than this factor is not repeated."""
RESOLUTION = 1.02
"""The rate found is within this factor of the largest one."""
STRIDE, SHORT_STRIDE = 1.4, 1.08
"""From a rate that is kept to the next one, until one is not; where another set of flags has shown about where."""
BETTER = 1.02
"""Other flags have to bring this much to be chosen."""
LOOKED_AT = 8
"""Of more replicas behind a router that deals out in turn only so many are simulated: no other one changes anything there."""
LESSER_FLEET = 16
"""A greater fleet behind a router that looks at loads or prefixes is simulated as one of so many under its share of the load,
which has less to choose from."""
FINE = 100
"""Up to so many replicas they are counted one by one, above by the hundredth."""
MORE = 1.5
"""A fleet may need so many times the replicas that one replica's rate says; with more the objectives are given up."""


class Question(NamedTuple):
    """What is asked of a fleet."""

    workload: Workload
    objectives: Sequence[Objective]
    rate: float
    """Requests a second, all together."""
    seed: int = 0
    most_requests: int = MOST_REQUESTS


class Capacity(NamedTuple):
    """What one replica can do. `rate` 0: not even one request at a time keeps the objectives, and `alone` shows it."""

    options: SimOptions
    rate: float
    trials: list[Trial]
    """All trials with these flags, by rate."""
    alone: Trial

    @property
    def at(self) -> Trial | None:
        """The trial at the rate found."""
        return next((one for one in self.trials if one.rate == self.rate), None)


class Replica:
    """Trials of one setup with one set of flags."""

    def __init__(
        self,
        question: Question,
        options: SimOptions,
        replicas: float | None = None,
        known: Trial | None = None,
    ) -> None:
        self.options = options
        self._question = question
        self._replicas = replicas
        self._known = known
        self._trials: dict[float, Trial] = {}
        self._alone: Trial | None = None

    @property
    def trials(self) -> list[Trial]:
        """All so far, by rate."""
        return [self._trials[rate] for rate in sorted(self._trials)]

    def alone(self) -> Trial:
        """A trial of requests that never meet."""
        if self._alone is None:
            self._alone = self._run(ALONE_RATE, ALONE_REQUESTS, Dealt(1), to_the_end=True)
        return self._alone

    def try_rate(self, rate: float, to_the_end: bool = False) -> Trial:
        """A trial at this rate; one that was made is not repeated."""
        if rate not in self._trials:
            self._trials[rate] = self._long_enough(rate, to_the_end)
        return self._trials[rate]

    def _long_enough(self, rate: float, to_the_end: bool) -> Trial:
        """A trial that lasts for `LIFETIMES` of its own requests, which nobody knows before."""
        below = [one for one in self.trials if one.rate < rate and one.complete]
        count = self._count(rate, below[-1] if below else self._known or self.alone())
        while True:
            found = self._run(rate, count, self._dealt(rate), to_the_end)
            longer = self._count(rate, found)
            if not found.complete or longer <= ENOUGH * count:
                return found
            count = longer

    def keeps(self, rate: float) -> bool:
        """Whether the objectives are kept at this rate."""
        return self.try_rate(rate).keeps(self._question.objectives)

    def burst_rate(self) -> float:
        """Requests a second when many come at once: about what it can do."""
        made = requests(self._question.workload, 1e9, BURST_REQUESTS, 1, self._question.seed)
        last_ns = max(at_ns for at_ns, _ in drive(_fleet(self.options, 1), made))
        return BURST_REQUESTS / last_ns * SECOND_NS

    def _dealt(self, rate: float) -> Dealt:
        """The replicas among which the load is dealt out when each gets this rate."""
        if self.options.router != "round-robin":
            return Dealt(1)
        return Dealt(max(1.0, self._replicas or self._question.rate / rate))

    def _run(self, rate: float, count: int, dealt: Dealt, to_the_end: bool) -> Trial:
        asked = self._question
        return trial(
            _fleet(self.options, 1),
            asked.workload,
            rate,
            count,
            asked.objectives,
            seed=asked.seed,
            dealt=dealt,
            to_the_end=to_the_end,
        )

    def _count(self, rate: float, known: Trial) -> int:
        """Requests of a trial: enough for the percentiles, and for `LIFETIMES` of a request as long as in another trial."""
        latency_ms = known.values["request_latency", "p50"] or 0.0
        wanted = math.ceil(rate * latency_ms / 1e3 * LIFETIMES)
        return min(max(LEAST_REQUESTS, wanted), max(LEAST_REQUESTS, self._question.most_requests))


def capacity(question: Question, choices: Sequence[SimOptions]) -> Capacity:
    """The best of several sets of flags for one replica; the first of those that are equally good."""
    best: Capacity | None = None
    slack: int | None = None  # tokens of a step of which more change nothing
    before: tuple[int, Trial] | None = None
    for options in choices:
        tokens = options.max_num_batched_tokens or 0
        if slack is not None and tokens > slack:
            continue
        known = best.at if best else None
        replica = Replica(question, options, known=known)
        alone = replica.alone()
        rate = 0.0
        if not alone.keeps(question.objectives):
            pass
        elif best is None or not best.rate:
            rate = _largest(replica, replica.burst_rate(), STRIDE)
        elif replica.keeps(best.rate * BETTER):
            rate = _largest(replica, best.rate * BETTER, SHORT_STRIDE)
        else:
            tried = replica.try_rate(best.rate * BETTER)
            if before is not None and tokens > before[0] and tried == before[1]:
                slack = tokens
            before = tokens, tried
        if best is None or rate > best.rate:
            best = Capacity(options, rate, replica.trials, alone)
    assert best is not None, "there is a choice of flags"
    return best


def _largest(replica: Replica, guess: float, stride: float) -> float:
    """The largest rate that is kept, if `ALONE_RATE` is.

    From a guess in strides until one is kept and one is not, then by halves.
    """
    kept, missed = 0.0, math.inf
    rate = guess
    while not kept or missed == math.inf:
        if replica.keeps(rate):
            kept = rate
            rate *= stride
        else:
            missed = rate
            rate /= stride
            if rate < ALONE_RATE:
                return ALONE_RATE
    while missed > kept * RESOLUTION:
        rate = (missed + kept) / 2
        if replica.keeps(rate):
            kept = rate
        else:
            missed = rate
    return kept


def curve_rates(found: Capacity, points: int = 8) -> list[float]:
    """Evenly spaced rates of one replica, up to the one found and one step beyond it."""
    return [found.rate * number / points for number in range(1, points + 2)]


def curve_trial(question: Question, options: SimOptions, replicas: int, rate: float) -> Trial:
    """One replica of so many at a rate of its own: a point of the curve behind the answer."""
    return Replica(question, options, replicas).try_rate(rate, to_the_end=True)


def _fleet(options: SimOptions, replicas: int) -> Deployment[Request]:
    """Replicas of their own behind one router; experts are not shared among them."""
    engines: list[Engine[Request]] = [deployment(options).engines[0] for _ in range(replicas)]
    return Deployment(engines, options.router)


def fleet_trial(question: Question, found: Capacity, replicas: int, rate: float) -> Trial:
    """A load on so many replicas behind one router.

    Of those behind one that deals out in turn at most `LOOKED_AT` are simulated, each with exactly the requests it gets;
    else at most `LESSER_FLEET`.
    """
    in_turn = found.options.router == "round-robin"
    looked_at = min(replicas, LOOKED_AT if in_turn else LESSER_FLEET)
    alone = found.at.requests if found.at else LEAST_REQUESTS
    return trial(
        _fleet(found.options, looked_at),
        question.workload,
        rate * looked_at / replicas,
        min(FLEET_LENGTH * alone * looked_at, MOST_FLEET_REQUESTS),
        question.objectives,
        seed=question.seed,
        dealt=Dealt(replicas, looked_at) if in_turn else None,
    )


def fewest(
    question: Question, found: Capacity, spare: float = 0.0
) -> tuple[int, Trial, tuple[int, Trial] | None]:
    """The fewest replicas that together keep the objectives, the trial of them under the whole load, and the next smaller
    fleet with its trial; None: there is none.

    They are found for a load that is greater by the share that is to be kept free. Where no number up to `MORE` times what
    one replica's rate says keeps the objectives, the largest that was tried is returned with its trial.
    """
    load = question.rate / (1 - spare)
    replicas = max(1, math.ceil(load / found.rate))
    step = max(1, replicas // FINE)
    most = math.ceil(replicas * MORE) + 1
    tried: dict[int, Trial] = {}

    def keeps(count: int) -> bool:
        tried[count] = fleet_trial(question, found, count, load)
        return tried[count].keeps(question.objectives)

    if keeps(replicas):
        while replicas > 1 and keeps(max(1, replicas - step)):
            replicas = max(1, replicas - step)
    else:
        missed, stride = replicas, step
        while replicas < most and not keeps(replicas := min(missed + stride, most)):
            missed, stride = replicas, 2 * stride
        while tried[replicas].keeps(question.objectives) and replicas - missed > step:
            middle = (replicas + missed) // 2
            missed, replicas = (missed, middle) if keeps(middle) else (middle, replicas)
    fewer = max((count for count in tried if count < replicas), default=None)
    whole = fleet_trial(question, found, replicas, question.rate) if spare else tried[replicas]
    return replicas, whole, None if fewer is None else (fewer, tried[fewer])
