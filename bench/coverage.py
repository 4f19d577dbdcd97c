"""How often the 95 % intervals hold: queues whose truth is known by formula, a thousand of each kind.

M/M/1 at a load of 0.5, 0.8 and 0.9, 1,000 and 10,000 requests: as autocorrelated and as skewed as a server's latencies get.
The time in such a queue is exponential with rate 1 - load, services lasting 1 in the mean. Each queue starts in its
stationary state, so that nothing but chance is in the way. Beside them, what every interval has to do: independent samples, and
a normal process of first order. An interval that is open above covers what is above its lower end.

The rules were made on these. The runs of `bench.elsewhere` show whether they hold on others.
"""

from __future__ import annotations

import itertools
import math
import sys
from collections.abc import Callable, Iterator
from functools import partial
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bench import elsewhere
from bench.ground import Ground
from bench.table import Item
from loadstone.estimate import Estimate, batches, order, rates
from loadstone.estimate.share import share
from loadstone.metrics import Number
from loadstone.report import Interval
from loadstone.summary.intervals import of_number

REPEATS = 1
REPLICATIONS, SHORT_REPLICATIONS = 1_000, 40
TOGETHER = 100
"""Replications simulated side by side."""
LOADS, COUNTS = (0.5, 0.8, 0.9), (1_000, 10_000)
QUANTILES = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99}
OBJECTIVE = 0.9
"""The share of requests that meet the objective, which is the true p90."""
NOMINAL, OFF = 95.0, 2.0
MEMORY = 0.9
"""Of the normal process: the correlation of neighbours."""

Floats = NDArray[np.float64]
Found = Iterator[tuple[str, Estimate | Interval, float]]
"""A statistic, its interval and the truth."""


class Cell(NamedTuple):
    """What came of one statistic in one kind of run."""

    name: str
    stat: str
    held: list[bool]
    """Of those with an interval, whether it holds the truth."""
    open_above: int
    withheld: int

    @property
    def percent(self) -> float:
        """How many of a hundred intervals hold the truth."""
        return 100 * sum(self.held) / len(self.held)

    @property
    def runs(self) -> int:
        """How many there were."""
        return len(self.held) + self.withheld


def measure(ground: Ground) -> list[Item]:
    replications = SHORT_REPLICATIONS if ground.short else REPLICATIONS
    cells = list(_cells(replications, COUNTS[:1] if ground.short else COUNTS))
    print(*told(cells), sep="\n", file=sys.stderr)
    given = [cell for cell in cells if cell.held]
    return [
        *(Item(f"coverage: {cell.name}, {cell.stat}", "%", [cell.percent]) for cell in given),
        *(
            Item(f"coverage: {cell.name}, {cell.stat}: off {NOMINAL:g} % by", "points", [_off(cell)], OFF)
            for cell in given
        ),
    ]


def told(cells: list[Cell]) -> Iterator[str]:
    """A line of a table for each kind of run: how many intervals hold, how many of all are open above (^) or withheld (-)."""
    stats = list(dict.fromkeys(cell.stat for cell in cells))
    yield "| run | " + " | ".join(stats) + " |"
    yield "|---|" + "---|" * len(stats)
    for name in dict.fromkeys(cell.name for cell in cells):
        row = {cell.stat: _entry(cell) for cell in cells if cell.name == name}
        yield f"| {name} | " + " | ".join(row.get(stat, "") for stat in stats) + " |"


def _entry(cell: Cell) -> str:
    marks = [
        f"{100 * count / cell.runs:.0f} % {what}"
        for count, what in ((cell.open_above, "open"), (cell.withheld, "withheld"))
        if count
    ]
    held = f"{cell.percent:.1f}" if cell.held else ""
    return f"{held} ({', '.join(marks)})" if marks else held


def _off(cell: Cell) -> float:
    return abs(cell.percent - NOMINAL)


def _cells(replications: int, counts: tuple[int, ...]) -> Iterator[Cell]:
    for load in LOADS:
        for count in counts:
            yield from _kind(f"M/M/1 {load}, {count:,}", partial(_queues, load, count), replications)
    yield from _kind("independent exponential, 1,000", _independent, replications)
    yield from _kind(
        f"normal, {MEMORY} from one to the next, {counts[-1]:,}", partial(_normal, counts[-1]), replications
    )
    yield from _elsewhere(replications, counts)


def _kind(
    name: str, runs: Callable[[int, np.random.Generator], Iterator[Found]], replications: int
) -> Iterator[Cell]:
    """The cells of one kind of run, each with its own stream of random numbers."""
    random = np.random.default_rng([ord(letter) for letter in name])
    cells: dict[str, Cell] = {}
    for start in range(0, replications, TOGETHER):
        for run in runs(min(TOGETHER, replications - start), random):
            for stat, interval, truth in run:
                _count(cells.setdefault(stat, Cell(name, stat, [], 0, 0)), cells, interval, truth)
    yield from cells.values()


def _count(cell: Cell, cells: dict[str, Cell], interval: Estimate | Interval, truth: float) -> None:
    if interval.low is None:
        cells[cell.stat] = cell._replace(withheld=cell.withheld + 1)
        return
    cell.held.append(interval.low <= truth and (interval.high is None or truth <= interval.high))
    cells[cell.stat] = cell._replace(open_above=cell.open_above + (interval.high is None))


def _elsewhere(replications: int, counts: tuple[int, ...]) -> Iterator[Cell]:
    for name, load, service, count in (
        ("M/D/1", 0.8, elsewhere.steady(), counts[0]),
        ("M/H2/1", 0.7, elsewhere.uneven(4.0), counts[-1]),
    ):
        runs = partial(_other_queues, load, service, elsewhere.drawn(load, service), count)
        yield from _kind(f"{name} {load}, {count:,}", runs, replications)
    count = 2 * counts[0]
    yield from _kind(f"batching engine 0.7, {count:,}", _engine_runs(count, replications), replications)
    for memory, count in ((0.0, counts[0]), (0.7, counts[0]), (MEMORY, counts[-1])):
        name = f"lognormal, {memory:g} from one to the next, {count:,}"
        yield from _kind(name, partial(_lognormal, memory, count), replications)


def _other_queues(
    load: float,
    service: elsewhere.Service,
    truth: Floats,
    count: int,
    together: int,
    random: np.random.Generator,
) -> Iterator[Found]:
    first = elsewhere.waits(load, service, together, random) + service.whole(random, together)
    gaps = random.exponential(1 / load, (count - 1, together))
    times = sojourns(first, gaps, service.whole(random, (count - 1, together)))
    sent = np.concatenate((np.zeros((1, together)), np.cumsum(gaps, axis=0)))
    for at in range(together):
        yield _run(load, truth, np.ascontiguousarray(sent[:, at]), np.ascontiguousarray(times[:, at]))


def _engine_runs(count: int, replications: int) -> Callable[[int, np.random.Generator], Iterator[Found]]:
    """All runs are parts of one, which is played when the first are asked for."""
    sent, latencies = elsewhere.engine(count, replications, np.random.default_rng(count))
    truth, rows = np.sort(latencies, axis=None), iter(range(replications))

    def runs(together: int, random: np.random.Generator) -> Iterator[Found]:
        for row in itertools.islice(rows, together):
            yield _run(elsewhere.PER_SECOND, truth, sent[row], latencies[row])

    return runs


def _run(per_second: float, truth: Floats, sent: Floats, times: Floats) -> Found:
    """A run of a system of which only sorted times, very many, are known."""
    quantile = elsewhere.quantile_of(truth)
    yield from _latencies(times, float(truth.mean()), quantile)
    yield from _goodput(per_second, quantile(OBJECTIVE), sent, times)


def _lognormal(memory: float, count: int, together: int, random: np.random.Generator) -> Iterator[Found]:
    for values in elsewhere.lognormal(memory, count, together, random).T:
        yield _latencies(
            np.ascontiguousarray(values), math.exp(0.5), lambda q: math.exp(NormalDist().inv_cdf(q))
        )


def sojourns(first: Floats, gaps: Floats, services: Floats) -> Floats:
    """Times in a queue of one server (Lindley, 1952), one row a request: what is left of the one before, and one's own service.

    `first` is the time of the first request; `gaps` and `services` are those of the ones that follow.
    """
    times = np.empty((len(gaps) + 1, *first.shape))
    times[0] = first
    for at, (gap, service) in enumerate(zip(gaps, services, strict=True)):
        times[at + 1] = np.maximum(times[at] - gap, 0) + service
    return times


def _queues(load: float, count: int, together: int, random: np.random.Generator) -> Iterator[Found]:
    shape = (count - 1, together)
    gaps = random.exponential(1 / load, shape)
    times = sojourns(random.exponential(1 / (1 - load), together), gaps, random.exponential(1.0, shape))
    sent = np.concatenate((np.zeros((1, together)), np.cumsum(gaps, axis=0)))
    for at in range(together):
        yield _of_queue(load, np.ascontiguousarray(sent[:, at]), np.ascontiguousarray(times[:, at]))


def _of_queue(load: float, sent: Floats, times: Floats) -> Found:
    mean = 1 / (1 - load)
    yield from _latencies(times, mean, lambda q: -math.log(1 - q) * mean)
    yield from _goodput(load, -math.log(1 - OBJECTIVE) * mean, sent, times)


def _goodput(per_second: float, limit: float, sent: Floats, times: Floats) -> Found:
    met = times <= limit
    yield "goodput, share", share(met, times), OBJECTIVE
    hits = met.astype(np.float64)
    paced = rates.open_loop(sent, sent + times, by_time=False)
    goodput = Number(float(hits.sum() / paced.spent.sum()), None, (hits, paced), met, times)
    yield "goodput, rate", of_number(goodput)["mean"], per_second * OBJECTIVE


def _latencies(times: Floats, mean: float, quantile: Callable[[float], float]) -> Found:
    yield "mean", batches.mean(times), mean
    intervals = order.quantiles(times, list(QUANTILES.values()))
    for (stat, q), interval in zip(QUANTILES.items(), intervals, strict=True):
        yield stat, interval, quantile(q)


def _independent(together: int, random: np.random.Generator) -> Iterator[Found]:
    for times in random.exponential(1.0, (together, 1_000)):
        yield _latencies(times, 1.0, lambda q: -math.log(1 - q))


def _normal(count: int, together: int, random: np.random.Generator) -> Iterator[Found]:
    values = random.normal(0, 1, (count, together))
    for at in range(1, count):
        values[at] = MEMORY * values[at - 1] + math.sqrt(1 - MEMORY**2) * values[at]
    for at in range(together):
        yield _latencies(np.ascontiguousarray(values[:, at]), 0.0, NormalDist().inv_cdf)
