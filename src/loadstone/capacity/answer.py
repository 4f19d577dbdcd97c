"""The answer: every way that keeps the objectives, with what it takes and costs, the cheapest first."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, Protocol, TypeVar

from loadstone.capacity.candidates import Asked, LeftOut, Setup, flags, name, setups, usual
from loadstone.capacity.search import Capacity, Question, capacity, curve_rates, curve_trial, fewest
from loadstone.capacity.trial import OF_GAPS, Trial
from loadstone.capacity.workload import Workload
from loadstone.errors import UsageError
from loadstone.roofline.work import prompt
from loadstone.sim.case import modelled
from loadstone.sim.caution import caution
from loadstone.slo import Objective

HOUR_S = 3600
SETUPS, CURVE = "setups (then the fleet and the curve)", "points of the curve"
"""What is tried, for who waits."""
PILING_UP = "throughput"
"""What limits a replica whose objectives would be kept, were it not that requests pile up."""


class Way(NamedTuple):
    """One setup at its best flags, with as many replicas as the rate needs."""

    setup: Setup
    capacity: Capacity
    replicas: int
    """By what one replica sustains; of the best way, by the trial of its fleet."""
    limited_by: str
    """What keeps one replica from a higher rate: objectives, or throughput."""
    output_tokens_s: float
    """That are asked for, all together."""
    whole: Trial | None = None
    """Its fleet under the whole load, where that was tried."""
    fewer: tuple[int, Trial] | None = None
    """The nearest smaller fleet that was tried, and does not do; None: one replica is enough, or no fleet was tried."""

    @property
    def name(self) -> str:
        """One replica in a few words."""
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


class Usual(NamedTuple):
    """One replica of the best way with vLLM's own `max_num_batched_tokens`, at the rate of the chosen one."""

    tokens: int
    trial: Trial


class Answer(NamedTuple):
    """What a load needs. `best` is None where nothing keeps the objectives."""

    best: Way | None
    curve: list[Trial]
    """One replica of the best way, by rate."""
    ways: list[Way]
    """All that keep the objectives: the cheapest first, those of unknown price behind them by their devices."""
    left_out: list[LeftOut]
    near: Way | None = None
    """Where there is a caution against the best way: the cheapest one against which there is none, if there is one."""
    usual: Usual | None = None
    """None: the best way has vLLM's own number of tokens, or cannot have it."""


R = TypeVar("R")


class Apply(Protocol):
    """Applies a function to each of some arguments, in one process or in several; results in the arguments' order."""

    def __call__(
        self, function: Callable[..., R], arguments: Sequence[tuple[Any, ...]], what: str
    ) -> Iterable[R]:
        """`what` it is that there are several of, for who waits."""


def check(objectives: Sequence[Objective], workload: Workload) -> None:
    """UsageError: an objective of something that no request of the workload has."""
    for one in objectives:
        if one.metric in OF_GAPS and workload.osl == 1 and not workload.osl_stddev:
            raise UsageError(
                f"--slo {one}: answers of one token (osl=1) have no gaps between tokens; leave it out, or make osl 2 or more."
            )


def answer(asked: Asked, question: Question, spare: float, apply: Apply) -> Answer:
    """How to serve a load, a share of what the fleet can do being kept free. Raises `UsageError`."""
    check(question.objectives, question.workload)
    found = list(setups(asked, question.workload))
    left_out = [one for one in found if isinstance(one, LeftOut)]
    tried = [
        (one, question, flags(one, asked.batched_tokens), spare) for one in found if isinstance(one, Setup)
    ]
    if not tried:
        first, *others = left_out
        more = f" So it is with {len(others)} more." if others else ""
        raise UsageError(f"plan: nothing to try. {first.name}: {first.why}{more}")
    results = list(apply(way, tried, SETUPS))
    left_out += [one for one in results if isinstance(one, LeftOut)]
    ways = sorted((one for one in results if isinstance(one, Way)), key=_order)

    while pending := [one for one in _wanted(ways) if one.whole is None]:
        what = f"fleets ({', '.join(one.name for one in pending)})"
        wholes = list(apply(confirmed, [(one, question, spare) for one in pending], what))
        rest = [one for one in ways if all(one is not other for other in pending)]
        ways = sorted([*rest, *(one for one in wholes if isinstance(one, Way))], key=_order)
        left_out += [one for one in wholes if isinstance(one, LeftOut)]
    if not ways:
        return Answer(None, [], [], left_out)
    best, near = ways[0], _without_caution(ways)
    near = None if near is best else near
    options = best.capacity.options
    points = [(question, options, best.replicas, rate) for rate in curve_rates(best.capacity)]
    default = usual(options)
    if default is not None:
        points.append((question, default, best.replicas, best.capacity.rate))
    tried_points = list(apply(curve_trial, points, CURVE))
    compared = None
    if default is not None:
        compared = Usual(default.max_num_batched_tokens or 0, tried_points.pop())
    return Answer(best, tried_points, ways, left_out, near, compared)


def _wanted(ways: Sequence[Way]) -> list[Way]:
    """Of ways in their order, those that are to be tried as a whole: the cheapest, and the cheapest without a caution."""
    near = _without_caution(ways)
    return [*ways[:1], *([near] if near is not None and near is not ways[0] else [])]


def _without_caution(ways: Sequence[Way]) -> Way | None:
    return next((one for one in ways if caution(one.setup.options) is None), None)


def way(setup: Setup, question: Question, choices: Sequence[Any], spare: float) -> Way | LeftOut:
    """What a setup can do, or which objective it does not even keep for one request at a time."""
    if not choices:
        return LeftOut(name(setup), "memory", "out of memory with every --max-num-batched-tokens asked for.")
    found = capacity(question, choices)
    if not found.rate:
        return _too_slow(setup, found, question)
    return Way(
        setup,
        found,
        math.ceil(question.rate / (1 - spare) / found.rate),
        limit(found, question),
        question.rate * question.workload.osl,
    )


def confirmed(one: Way, question: Question, spare: float) -> Way | LeftOut:
    """A way with the replicas that its whole fleet takes."""
    replicas, whole, fewer = fewest(question, one.capacity, spare)
    if not whole.keeps(question.objectives):
        told = "; ".join(_told(whole, question.objectives)) or "requests pile up"
        return LeftOut(one.name, "objectives", f"{replicas:,} replicas behind one router do not: {told}.")
    return one._replace(replicas=replicas, whole=whole, fewer=fewer)


def _too_slow(setup: Setup, found: Capacity, question: Question) -> LeftOut:
    """A setup on which a request alone breaks an objective."""
    told = "; ".join(_told(found.alone, question.objectives)) or "it is not sustained"
    values = ((found.alone.values[one.metric, one.stat], one.limit) for one in question.objectives)
    miss = max((value / limit_ms for value, limit_ms in values if value is not None), default=None)
    return LeftOut(name(setup), "objectives", f"a request that is alone does not keep {told}.", miss)


def _told(trial: Trial, objectives: Sequence[Objective]) -> list[str]:
    """Every objective that is broken, with its value."""
    found = []
    for one in trial.broken(objectives):
        value = trial.values[one.metric, one.stat]
        found.append(f"{one}: {'no value' if value is None else f'{value:.3g} ms'}")
    return found


def limit(found: Capacity, question: Question) -> str:
    """What broke first above the rate found."""
    above = next((one for one in found.trials if one.rate > found.rate), None)
    broken = above.broken(question.objectives) if above else []
    return ", ".join(f"{one.metric}.{one.stat}" for one in broken) or PILING_UP


def link_share(setup: Setup, tokens: int) -> float:
    """Of a step that takes in so many tokens of a prompt, the part that goes to links between devices."""
    found = modelled(setup.options)
    if found is None:
        return 0.0
    case, efficiency = found
    roofline = case.roofline(efficiency)
    parts = roofline.parts(prompt(tokens, 0, roofline.window))
    return parts.communication / parts.total


def outdone(ways: Sequence[Way]) -> list[tuple[Way, Way]]:
    """Ways of which one replica does less than one with fewer devices of the same kind, each with that one."""
    found = []
    for one in ways:
        lesser = [
            other
            for other in ways
            if other.setup.gpu.name == one.setup.gpu.name
            and other.setup.options.quantization == one.setup.options.quantization
            and other.setup.devices < one.setup.devices
            and other.capacity.rate >= one.capacity.rate
        ]
        if lesser:
            found.append((one, max(lesser, key=lambda other: other.capacity.rate)))
    return found


def _order(one: Way) -> tuple[bool, float, int, int, str]:
    usd = one.usd_hour
    return usd is None, round(usd or 0.0, 6), one.devices, one.setup.devices, one.name
