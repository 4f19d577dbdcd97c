"""How often the 95 % intervals of throughput hold in runs of a few latencies, and how wide they are beside what runs really do.

Open loops at 5 requests/s and closed ones of 32 slots whose windows are about 3, 10 and 30 mean latencies. Answers of 256 tokens in the mean:
fixed, normal or exponential; a request takes 0.3 to 0.6 s and 30 ms a token. The truth is the mean rate of all runs of a kind, and half
the true width 1.96 of their standard deviations.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from functools import partial
from heapq import heapreplace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bench.ground import Ground
from bench.table import Item
from loadstone.estimate import Estimate, rates

REPEATS = 1
REPLICATIONS, SHORT_REPLICATIONS = 500, 20
WINDOWS = (3, 10, 30)
"""In mean latencies."""
PER_SECOND, SLOTS = 5.0, 32
TOKENS, SPREAD, STEP_S = 256.0, 80.0, 0.03
LATENCY_S = 0.45 + TOKENS * STEP_S
LEAST, WIDEST = 93.0, 1.5
"""Coverage in percent, and the width in true ones."""

Floats = NDArray[np.float64]
Lengths = Callable[[np.random.Generator, int], Floats]

LENGTHS: dict[str, Lengths] = {
    "fixed": lambda random, count: np.full(count, TOKENS),
    "normal": lambda random, count: np.maximum(random.normal(TOKENS, SPREAD, count), 1),
    "exponential": lambda random, count: np.maximum(random.exponential(TOKENS, count), 1),
}


class Kind(NamedTuple):
    """What came of the runs of one kind."""

    name: str
    values: list[float]
    intervals: list[Estimate]

    @property
    def percent(self) -> float:
        """How many of a hundred intervals hold the truth."""
        truth = float(np.mean(self.values))
        held = [(one.low or 0.0) <= truth <= (one.high or 0.0) for one in self._given]
        return 100 * float(np.mean(held))

    @property
    def half(self) -> float:
        """Half the median width, in percent of the truth."""
        widths = [(one.high or 0.0) - (one.low or 0.0) for one in self._given]
        return 50 * float(np.median(widths) / np.mean(self.values))

    @property
    def true_half(self) -> float:
        """The same of 95 % of all runs."""
        return 196 * float(np.std(self.values) / np.mean(self.values))

    @property
    def _given(self) -> list[Estimate]:
        return [one for one in self.intervals if one.low is not None]


def measure(ground: Ground) -> list[Item]:
    items: list[Item] = []
    for kind in kinds(SHORT_REPLICATIONS if ground.short else REPLICATIONS):
        print(
            f"| {kind.name} | {kind.percent:.1f} | {kind.half:.2f} % | {kind.true_half:.2f} % |",
            file=sys.stderr,
        )
        name = f"rates: {kind.name}"
        items += [
            Item(f"{name}: intervals that hold", "%", [kind.percent], LEAST, "at least"),
            Item(f"{name}: half width", "true ones", [kind.half / kind.true_half], WIDEST),
        ]
    return items


def kinds(replications: int) -> Iterator[Kind]:
    """All kinds of runs, each with its own stream of random numbers."""
    for window in WINDOWS:
        for lengths in LENGTHS:
            for by_time in (False, True):
                stop = "a time" if by_time else "a number"
                name = f"open, {window} latencies, {lengths}, until {stop}"
                yield _kind(name, partial(_open, window, LENGTHS[lengths], by_time), replications)
            name = f"closed, {window} latencies, {lengths}"
            yield _kind(name, partial(_closed, window, LENGTHS[lengths]), replications)


def _kind(name: str, run: Callable[[np.random.Generator], tuple[float, Estimate]], replications: int) -> Kind:
    random = np.random.default_rng([ord(letter) for letter in name])
    values, intervals = zip(*(run(random) for _ in range(replications)), strict=True)
    return Kind(name, list(values), list(intervals))


def _open(
    window: int, lengths: Lengths, by_time: bool, random: np.random.Generator
) -> tuple[float, Estimate]:
    sending_s = (window - 1) * LATENCY_S
    expected = round(PER_SECOND * sending_s)
    count = random.poisson(expected) if by_time else expected
    sent = (
        np.sort(random.random(count)) * sending_s
        if by_time
        else np.cumsum(random.exponential(1 / PER_SECOND, count))
    )
    tokens = lengths(random, count)
    return _told(tokens, rates.open_loop(sent, sent + _times(random, tokens), by_time=by_time))


def _closed(window: int, lengths: Lengths, random: np.random.Generator) -> tuple[float, Estimate]:
    """The last round is not a whole one."""
    tokens = lengths(random, window * SLOTS - SLOTS // 3)
    times = _times(random, tokens)
    sent, free = np.empty(len(times)), [0.0] * SLOTS
    for at, time in enumerate(times.tolist()):
        sent[at] = free[0]
        heapreplace(free, free[0] + time)
    return _told(tokens, rates.closed_loop(sent, sent + times, SLOTS))


def _times(random: np.random.Generator, tokens: Floats) -> Floats:
    return np.asarray(0.3 + 0.3 * random.random(len(tokens)) + STEP_S * tokens, np.float64)


def _told(tokens: Floats, paced: rates.Paced) -> tuple[float, Estimate]:
    return float(tokens.sum() / paced.spent.sum()), rates.rate(tokens, paced)
