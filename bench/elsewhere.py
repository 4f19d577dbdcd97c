"""Runs that the rules for intervals were not made on, whose truth is known: other queues, the built-in engine, lognormal series.

A queue of one server (M/G/1) starts in its stationary state: the wait is the sum of a geometric number of residual services
(Pollaczek and Khinchine), which also gives the truth, from `DRAWN` draws. The engine batches: one run of all requests together
is cut into as many as there are to be, and its own figures are the truth.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from loadstone.sim.cost import Linear
from loadstone.sim.deployment import Deployment
from loadstone.sim.drive import drive
from loadstone.sim.engine import Engine, Limits
from loadstone.sim.sequence import Sequence

DRAWN = 5_000_000
OSL, SLOTS, PER_SECOND = 20, 8, 20.0
"""Of the engine: a full batch of 8 makes 571 tokens/s, and 400 are asked for."""
SETTLING = 1_000
"""Requests before the engine's first that count."""

Floats = NDArray[np.float64]
Draw = Callable[[np.random.Generator, int | tuple[int, int]], Floats]


class Service(NamedTuple):
    """How long services last, 1 in the mean."""

    whole: Draw
    residual: Draw
    """What is left of one at a random moment within it."""


def steady() -> Service:
    """All last 1."""
    return Service(lambda random, shape: np.ones(shape), lambda random, shape: random.random(shape))


def exponential() -> Service:
    """As in M/M/1."""
    draw: Draw = lambda random, shape: random.exponential(1.0, shape)  # noqa: E731
    return Service(draw, draw)


def uneven(square: float) -> Service:
    """Many short ones and few long ones: of two exponential kinds with equal parts of the work; variance `square`."""
    short = (1 + math.sqrt((square - 1) / (square + 1))) / 2

    def draw(share: float) -> Draw:
        return lambda random, shape: (
            random.exponential(1.0, shape)
            / np.where(random.random(shape) < share, 2 * short, 2 * (1 - short))
        )

    return Service(draw(short), draw(0.5))


def waits(load: float, service: Service, count: int, random: np.random.Generator) -> Floats:
    """The waits of independent requests in the stationary state."""
    ends = np.cumsum(residuals := random.geometric(1 - load, count) - 1)
    sums = np.concatenate(([0.0], np.cumsum(service.residual(random, int(ends[-1])))))
    return np.asarray(sums[ends] - sums[ends - residuals], np.float64)


def drawn(load: float, service: Service) -> Floats:
    """Sorted times in the queue, as many as the truth takes."""
    random = np.random.default_rng(DRAWN)
    parts = DRAWN // 10
    times = [waits(load, service, parts, random) + service.whole(random, parts) for _ in range(10)]
    return np.sort(np.concatenate(times))


def lognormal(memory: float, count: int, together: int, random: np.random.Generator) -> Floats:
    """Series, one a column, of exp(z), with z normal and correlated by `memory` from one to the next."""
    values = random.normal(0, 1, (count, together))
    for at in range(1, count) if memory else ():
        values[at] = memory * values[at - 1] + math.sqrt(1 - memory**2) * values[at]
    return np.exp(values)


def engine(count: int, runs: int, random: np.random.Generator) -> tuple[Floats, Floats]:
    """When requests were sent, since the first of their run, and their latencies, in seconds: one row a run."""
    every = count * runs + SETTLING
    tokens = random.geometric(1 / OSL, every)
    sent_ns = np.cumsum(np.ceil(random.exponential(1e9 / PER_SECOND, every))).astype(np.int64)
    served: Engine[Sequence] = Engine(
        Linear(10_000_000, 500_000, 0), Limits(max_num_seqs=SLOTS, caching=False)
    )
    ended_ns = np.fromiter(_ends_ns(served, sent_ns, tokens), np.int64, every)
    latencies = (ended_ns - sent_ns)[SETTLING:].reshape(runs, count) / 1e9
    sent = sent_ns[SETTLING:].reshape(runs, count)
    return (sent - sent[:, :1]) / 1e9, latencies


def _ends_ns(
    served: Engine[Sequence], sent_ns: NDArray[np.int64], tokens: NDArray[np.int64]
) -> Iterator[int]:
    """When each request ended, in the order of sending; what ended before one that was sent earlier is kept until then."""
    kept: dict[Sequence, int] = {}
    waiting: list[Sequence] = []

    def arrivals() -> Iterator[tuple[int, Sequence]]:
        for at_ns, output in zip(sent_ns.tolist(), tokens.tolist(), strict=True):
            waiting.append(Sequence(1, output))
            yield at_ns, waiting[-1]

    first = 0
    for at_ns, ended in drive(Deployment([served]), arrivals()):
        kept[ended] = at_ns
        while first < len(waiting) and waiting[first] in kept:
            yield kept.pop(waiting[first])
            first += 1


def quantile_of(ordered: Floats) -> Callable[[float], float]:
    """The quantiles of sorted values."""
    return lambda q: float(ordered[int(q * len(ordered))])
