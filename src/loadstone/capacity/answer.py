"""The answer: every way that keeps the objectives, with what it takes and costs, the cheapest first."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from loadstone.capacity.candidates import Asked, LeftOut, Setup, flags, name, setups
from loadstone.capacity.search import Capacity, Question, capacity, curve, fewest
from loadstone.capacity.trial import Trial

HOUR_S = 3600


class Way(NamedTuple):
    """One setup at its best flags, with as many replicas as the rate needs."""

    setup: Setup
    capacity: Capacity
    replicas: int
    """By what one replica sustains alone, until the whole fleet was tried."""
    limited_by: str
    """What keeps one replica from a higher rate."""
    output_tokens_s: float
    """That are asked for, all together."""

    @property
    def name(self) -> str:
        """It in a few words."""
        return name(self.setup)

    @property
    def devices(self) -> int:
        """Devices in all."""
        return self.replicas * self.setup.devices

    @property
    def usd_hour(self) -> float | None:
        """What all of them cost; None: nobody knows."""
        each = self.setup.usd_hour
        return None if each is None else each * self.replicas

    @property
    def usd_million(self) -> float | None:
        """What a million output tokens cost."""
        return None if self.usd_hour is None else self.usd_hour / (self.output_tokens_s * HOUR_S / 1e6)


class Answer(NamedTuple):
    """What a load needs. `best` is None where nothing keeps the objectives."""

    best: Way | None
    whole: Trial | None
    """The best way's fleet under the whole load."""
    curve: list[Trial]
    """One replica of the best way, by rate."""
    ways: list[Way]
    """All that keep the objectives: the cheapest first, those of unknown price behind them by their devices."""
    left_out: list[LeftOut]


Run = Callable[
    [Callable[..., Way | LeftOut], Iterable[tuple[Setup, Question, float, Sequence[int]]]],
    Iterable[Way | LeftOut],
]
"""Applies a function to each of some arguments, in their order, in one process or in several."""


def answer(asked: Asked, question: Question, rate: float, apply: Run) -> Answer:
    """How to serve a rate, in requests a second. Raises `UsageError`."""
    found = list(setups(asked, question.workload))
    left_out = [one for one in found if isinstance(one, LeftOut)]
    ways = []
    for result in apply(
        way, [(one, question, rate, asked.batched_tokens) for one in found if isinstance(one, Setup)]
    ):
        if isinstance(result, LeftOut):
            left_out.append(result)
        else:
            ways.append(result)
    ways.sort(key=_order)
    if not ways:
        return Answer(None, None, [], [], left_out)
    best = ways[0]
    replicas, whole = fewest(question, best.capacity, rate)
    best = ways[0] = best._replace(replicas=replicas)
    return Answer(best, whole, curve(best.capacity, question), ways, left_out)


def way(setup: Setup, question: Question, rate: float, batched_tokens: Sequence[int]) -> Way | LeftOut:
    """What a setup can do, or which objective it does not even keep for one request at a time."""
    found = capacity(question, flags(setup, batched_tokens))
    if not found.rate:
        broken = found.idle.broken(question.objectives)
        told = "; ".join(
            f"{one.metric}.{one.stat} is {_value(found.idle, one.metric, one.stat)}" for one in broken
        )
        return LeftOut(
            name(setup), f"a request alone does not keep the objectives: {told or 'it is not sustained'}."
        )
    return Way(
        setup,
        found,
        math.ceil(rate / found.rate),
        _limit(found, question),
        rate * question.workload.osl,
    )


def _value(trial: Trial, metric: str, stat: str) -> str:
    value = trial.values[metric, stat]
    return "not known" if value is None else f"{value:.3g} ms"


def _limit(found: Capacity, question: Question) -> str:
    """What broke first above the rate found."""
    above = [one for one in found.trials if one.rate > found.rate]
    if not above:
        return "throughput"
    broken = above[0].broken(question.objectives)
    return ", ".join(f"{one.metric}.{one.stat}" for one in broken) or "throughput"


def _order(one: Way) -> tuple[bool, float, int]:
    usd = one.usd_hour
    return usd is None, usd or 0.0, one.devices
