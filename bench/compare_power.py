"""What `loadstone compare` shows: how often a difference where there is none, and how often a true one, against what it states.

Pairs of runs of the built-in engine on the virtual clock: Poisson arrivals, prompts and answers of exponential lengths, steps
that take a few percent more or less each. A/A pairs are two such runs of one engine; A/B pairs are of one whose prefill is
slower, so that the mean time to first token is about 3 % longer; what it is in truth is taken from all pairs together.
Paired: both are sent the same requests at the same times. Unpaired: each draws its own. Both are held against the same run A.
"""

from __future__ import annotations

import math
import os
import random
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from itertools import starmap
from typing import NamedTuple

import numpy as np

from bench.ground import Ground
from bench.table import Item
from loadstone.compare.importers._pace import pace
from loadstone.compare.result import Row
from loadstone.compare.sides import Requests, Run, Side
from loadstone.compare.verdict import rows
from loadstone.estimate.ratio import ALPHA
from loadstone.roofline.work import Work
from loadstone.sim.cost import Linear
from loadstone.sim.deployment import Deployment
from loadstone.sim.drive import drive
from loadstone.sim.engine import Engine, Limits
from loadstone.sim.sequence import Sequence

REPEATS = 1
REQUESTS = 1000
RATE = 12.0
"""Requests a second, at which the engine is busy most of the time and waits come and go."""
INPUT, OUTPUT = 400, 24
"""Mean lengths, tokens."""
STEP_NS, SEQUENCE_NS, PREFILL_NS = 8_000_000, 50_000, 60_000
SLOWER = 1.024
"""Of the prefill, which makes queues longer, too."""
NOISE = 0.05
"""Standard deviation of the logarithm of a step's duration."""
ALIKE, APART = 1000, 300
"""A/A pairs and A/B pairs; each is judged paired and unpaired."""
MOST_ALARMS = 6.5
MOST_OFF = 5.0
"""Percentage points between the power that is stated and the share of true differences that is found."""
FAMILY = ("time_to_first_token", "time_per_output_token", "request_latency", "output_token_throughput")
HEADLINE = ("time_to_first_token", "mean")


class Noisy(Linear):
    """Steps that do not take the same time again."""

    def __init__(self, prefill_ns: int, seed: int) -> None:
        super().__init__(STEP_NS, SEQUENCE_NS, prefill_ns)
        self._random = random.Random(seed)

    def step_ns(self, work: Work) -> int:
        return round(super().step_ns(work) * math.exp(NOISE * self._random.gauss(0, 1)))

    def steps_ns(self, work: Work, steps: int, growth: int, window_growth: int) -> list[int]:
        return [self.step_ns(work) for _ in range(steps)]


def arrivals(seed: int, count: int) -> Iterator[tuple[int, Sequence]]:
    draw, at_s = random.Random(seed), 0.0
    for _ in range(count):
        at_s += draw.expovariate(RATE)
        yield (
            round(at_s * 1e9),
            Sequence(1 + int(draw.expovariate(1 / INPUT)), 1 + int(draw.expovariate(1 / OUTPUT))),
        )


def run(asked: int, noise: int, slower: float, count: int) -> Run:
    """One run: what was asked and what the engine's steps took each by a seed of its own."""
    planned = list(arrivals(asked, count))
    engines: Deployment[Sequence] = Deployment([Engine(Noisy(round(PREFILL_NS * slower), noise), Limits())])
    for _ in drive(engines, planned):
        pass
    sent = np.array([at for at, _ in planned], np.float64)
    first, last, tokens = (
        np.array(found, np.float64)
        for found in zip(
            *((one.times()[0], one.times()[-1], len(one.times())) for _, one in planned), strict=True
        )
    )
    with np.errstate(divide="ignore", invalid="ignore"):
        gap = np.where(tokens > 1, (last - first) / (tokens - 1), np.nan)
    requests = Requests(
        sent_s=(sent - sent[0]) / 1e9,
        pace=pace((sent - sent[0]) / 1e9, (last - sent[0]) / 1e9),
        succeeded=np.ones(count, np.bool_),
        failed=np.zeros(count, np.bool_),
        latencies={
            "time_to_first_token": (first - sent) / 1e6,
            "time_per_output_token": gap / 1e6,
            "request_latency": (last - sent) / 1e6,
        },
        output_tokens=tokens,
        input_tokens=np.array([one.prompt_tokens for _, one in planned], np.float64),
        keys=np.arange(count),
    )
    from loadstone.compare.importers._numbers import of_requests

    return Run(path=str(asked), tool="", asked={}, numbers=of_requests(requests), requests=requests)


class Judged(NamedTuple):
    """What one comparison said."""

    change: float
    low: float
    high: float
    flagged: bool
    others: bool
    """Whether any row but the headline was said to differ."""
    alone: float
    """Share of all rows whose own interval leaves out no difference."""
    error: float
    freedom_point: float
    """Student's t at the level, times the error, is half the interval."""


def judged(pair: int, slower: float, count: int) -> tuple[Judged | None, Judged | None]:
    """A pair that was asked the same, and one that was not."""
    a, same, other = (
        run(asked, noise, of, count)
        for asked, noise, of in (
            (5 * pair, 5 * pair + 1, 1.0),
            (5 * pair, 5 * pair + 2, slower),
            (5 * pair + 3, 5 * pair + 4, slower),
        )
    )
    return _judged(a, same, paired=True), _judged(a, other, paired=False)


def _judged(a: Run, b: Run, *, paired: bool) -> Judged | None:
    """One comparison; None where its headline has no interval."""
    found = rows(Side("A", (a,)), Side("B", (b,)), paired=paired, metrics=FAMILY, headline=HEADLINE)
    main = next(row for row in found if row.headline)
    if main.low is None or main.high is None or main.change is None or main.shown_from is None:
        return None
    half = math.log(main.high / main.low) / 2
    error = (math.log1p(main.shown_from) - half) / 0.8416212
    told = [row for row in found if row.low is not None and row.metric not in ("error_rate",)]
    return Judged(
        main.change,
        main.low,
        main.high,
        bool(main.differs),
        any(row.differs for row in found if not row.headline),
        sum(map(_apart, told)) / len(told),
        error,
        half / error,
    )


def _apart(row: Row) -> bool:
    assert row.low is not None and row.high is not None
    none = 0 if row.difference else 1
    return row.low > none or row.high < none


def many(
    first: int, slower: float, pairs: int, count: int
) -> tuple[list[Judged | None], list[Judged | None]]:
    """Many pairs from the number `first` on, paired and unpaired, spread over the cores."""
    work = [(first + pair, slower, count) for pair in range(pairs)]
    with ProcessPoolExecutor(max_workers=os.cpu_count()) as pool:
        found = list(pool.map(judged, *zip(*work, strict=True), chunksize=10))
    return [same for same, _ in found], [other for _, other in found]


def measure(ground: Ground) -> list[Item]:
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    alike, apart = (20, 10) if ground.short else (ALIKE, APART)
    count = 200 if ground.short else REQUESTS
    items: list[Item] = []
    of_alike, of_apart = many(0, 1.0, alike, count), many(100_000, SLOWER, apart, count)
    for how, same, other in zip(("paired", "unpaired"), of_alike, of_apart, strict=True):
        items += list(starmap(Item, _alarms(how, [one for one in same if one], alike)))
        items += list(starmap(Item, _power(how, [one for one in other if one])))
    return items


def _alarms(
    how: str, found: list[Judged], asked: int
) -> Iterator[tuple[str, str, list[float], float | None]]:
    count = max(len(found), 1)
    yield f"A/A {how}: headline flagged", "%", [100 * sum(one.flagged for one in found) / count], MOST_ALARMS
    yield (
        f"A/A {how}: any other row flagged (Holm)",
        "%",
        [100 * sum(one.others for one in found) / count],
        MOST_ALARMS,
    )
    either = 100 * sum(one.flagged or one.others for one in found) / count
    yield f"A/A {how}: headline or any other row flagged", "%", [either], None
    yield (
        f"A/A {how}: rows whose own interval misses",
        "%",
        [100 * sum(one.alone for one in found) / count],
        MOST_ALARMS,
    )
    yield f"A/A {how}: without an interval", "%", [100 * (asked - len(found)) / asked], None


def _power(how: str, found: list[Judged]) -> Iterator[tuple[str, str, list[float], float | None]]:
    """What was found of the true change, and what each comparison would have said of its power, of that change."""
    if not found:
        return
    true = sum(math.log(one.change) for one in found) / len(found)
    shown = 100 * sum(one.flagged for one in found) / len(found)
    stated = 100 * sum(_stated(true, one) for one in found) / len(found)
    covered = 100 * sum(math.log(one.low) <= true <= math.log(one.high) for one in found) / len(found)
    yield f"A/B {how}: true change of TTFT", "%", [100 * math.expm1(true)], None
    yield f"A/B {how}: found", "%", [shown], None
    yield f"A/B {how}: power stated, mean", "%", [stated], None
    yield f"A/B {how}: found and stated apart", "points", [abs(shown - stated)], MOST_OFF
    yield f"A/B {how}: intervals that hold the true change", "%", [covered], None


def _stated(true: float, one: Judged) -> float:
    from statistics import NormalDist

    away, chance = abs(true) / one.error, NormalDist()
    return chance.cdf(away - one.freedom_point) + chance.cdf(-away - one.freedom_point)


assert ALPHA == 0.05, "the bars above are for it"
