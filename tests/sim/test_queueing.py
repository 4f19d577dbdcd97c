"""The engine as the queues of the textbook: waiting times by formula, and Little's law to the nanosecond.

One place and answers of one token make an M/D/1 queue of it, exactly: a step is a service, and an idle engine begins one at
once. Four places and answers of a geometric number of tokens, in steps of one length whatever is in them, make it M/M/4 up to
what a step is against a service, here 1 : 500. Two things remain of that. Who finds a place free waits for the end of the
step under way, half a step in the mean; that is no waiting for a place, and counts as none. And its place is kept for that
time, which makes services longer by at most 1 in 1000. Clerks who get the very same requests show both: those who begin only
when a step does wait to the nanosecond as the engine does, those who begin at once are the queue of the textbook.

Gaps and lengths are drawn in shares: each run has as many short and long ones as their distribution says, in random order. So
a run has the load it is meant to have, and the mean of thirty is known twice as well as with free draws.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from math import ceil, factorial, log, log1p
from random import Random
from statistics import fmean
from typing import NamedTuple

import pytest

from loadstone.sim.cost import Linear
from loadstone.sim.engine import Engine, Limits
from loadstone.sim.sequence import Sequence

STEP_NS = 1_000_000
NEVER_NS = 1 << 62
TOKENS = 500
"""Mean of an answer where it is not one token."""


class Queue(NamedTuple):
    places: int
    load: float
    mean_tokens: int

    def requests(self, count: int, seed: int) -> list[tuple[int, int]]:
        """Moments of arrival in ns, and tokens: exponential gaps, and 1 or a geometric number."""
        random = Random(f"{self}:{seed}")
        mean_gap_ns = self.mean_tokens * STEP_NS / (self.load * self.places)
        found, at_ns = [], 0
        for gap, length in zip(shares(random, count), shares(random, count), strict=True):
            at_ns += ceil(-log(1 - gap) * mean_gap_ns)
            ends = log1p(-1 / self.mean_tokens) if self.mean_tokens > 1 else 0
            found.append((at_ns, max(ceil(log(1 - length) / ends), 1) if ends else 1))
        return found

    def formula(self) -> float:
        """Mean wait in services."""
        return m_d_1(self.load) if self.mean_tokens == 1 else m_m_c(self.places, self.load)


def shares(random: Random, count: int) -> Iterator[float]:
    """Numbers in [0, 1), one in each of `count` equal parts, in random order (a Latin hypercube sample)."""
    parts = list(range(count))
    random.shuffle(parts)
    return ((part + random.random()) / count for part in parts)


def m_d_1(load: float) -> float:
    """Mean wait in services (Pollaczek and Khinchine): load / (2 (1 - load))."""
    return load / (2 * (1 - load))


def erlang_c(places: int, load: float) -> float:
    """The share of requests that find no place free."""
    offered = load * places
    full = offered**places / factorial(places) / (1 - load)
    return full / (sum(offered**k / factorial(k) for k in range(places)) + full)


def m_m_c(places: int, load: float) -> float:
    """Mean wait in services: Erlang's C / (places (1 - load))."""
    return erlang_c(places, load) / (places * (1 - load))


def by_clerks(requests: list[tuple[int, int]], places: int, in_steps: bool = False) -> list[int]:
    """Waits of requests for the first clerk who is free; to be served one after the other.

    `in_steps`: while any clerk is busy the others begin at an end of his steps only, as all do, and keep the place for it.
    """
    free_ns = [0] * places
    waits_ns = []
    step_ns = 0  # an end of a step of those who are busy
    for at_ns, tokens in requests:
        waits_ns.append(max(free_ns[0] - at_ns, 0))
        begins_ns = max(at_ns, free_ns[0])
        if in_steps and max(free_ns) > at_ns:
            begins_ns += (step_ns - begins_ns) % STEP_NS
        else:
            step_ns = begins_ns
        heapq.heapreplace(free_ns, begins_ns + tokens * STEP_NS)
    return waits_ns


def by_engine(requests: list[tuple[int, int]], places: int) -> list[int]:
    """Waits of requests for a place of an engine. Checks Little's law: two ways to count what it holds over time."""
    engine: Engine[Sequence] = Engine(Linear(STEP_NS, 0, 0), Limits(max_num_seqs=places, caching=False))
    waiting = iter(requests)
    coming_ns, tokens = next(waiting)
    arrived: dict[Sequence, int] = {}
    found_free: set[Sequence] = set()
    area_ns = in_system_ns = now_ns = 0
    end_ns: int | None = None
    while coming_ns < NEVER_NS or end_ns is not None:
        before_ns, now_ns = now_ns, coming_ns if end_ns is None else min(end_ns, coming_ns)
        area_ns += (now_ns - before_ns) * (len(engine.running) + len(engine.waiting))
        if end_ns == now_ns:
            engine.finish()
            end_ns = None
            in_system_ns += sum(one.times()[-1] - arrived[one] for one in engine.ended)
        if coming_ns == now_ns:
            one = Sequence(1, tokens)
            if len(engine.running) + len(engine.waiting) < places:
                found_free.add(one)
            arrived[one] = now_ns
            engine.add(one)
            coming_ns, tokens = next(waiting, (NEVER_NS, 0))
        if end_ns is None:
            end_ns = engine.begin(now_ns, coming_ns)
    assert area_ns == in_system_ns, "Little's law"
    return [0 if one in found_free else (one.scheduled_ns or 0) - at_ns for one, at_ns in arrived.items()]


def test_the_formulas_are_those_of_the_textbook() -> None:
    assert (m_d_1(0.5), m_d_1(0.8)) == (0.5, pytest.approx(2.0))
    assert m_m_c(1, 0.8) == pytest.approx(0.8 / 0.2), "M/M/1: load / (1 - load)"
    assert erlang_c(4, 0.5) == pytest.approx(4 / 23)
    assert erlang_c(4, 0.8) == pytest.approx(0.5964, abs=1e-4)


@pytest.mark.parametrize("load", [0.5, 0.8])
def test_one_place_and_one_token_is_m_d_1(load: float) -> None:
    queue = Queue(1, load, 1)
    means = []
    for seed in range(3):
        requests = queue.requests(10_000, seed)
        waits_ns = by_engine(requests, 1)
        assert waits_ns == by_clerks(requests, 1), "to the nanosecond"
        means.append(fmean(waits_ns) / STEP_NS)
    assert fmean(means) == pytest.approx(queue.formula(), rel=0.05)


@pytest.mark.parametrize("load", [0.5, 0.8])
def test_four_places_serve_as_four_clerks(load: float) -> None:
    requests = Queue(4, load, TOKENS).requests(6_000, seed=1)
    waits_ns = by_engine(requests, 4)
    assert waits_ns == by_clerks(requests, 4, in_steps=True), "to the nanosecond"
    assert sum(waits_ns) > 0
    assert fmean(waits_ns) == pytest.approx(fmean(by_clerks(requests, 4)), rel=0.01)


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("queue", "requests"),
    [
        (Queue(1, 0.5, 1), 15_000),
        (Queue(1, 0.8, 1), 40_000),
        (Queue(4, 0.5, TOKENS), 40_000),
        (Queue(4, 0.8, TOKENS), 60_000),
    ],
)
def test_thirty_seeds_are_within_two_per_cent(queue: Queue, requests: int) -> None:
    engine, clerks = [], []
    for seed in range(30):
        asked = queue.requests(requests, seed)
        waits_ns = by_engine(asked, queue.places)
        assert waits_ns == by_clerks(asked, queue.places, in_steps=True), "to the nanosecond"
        engine.append(fmean(waits_ns) / (queue.mean_tokens * STEP_NS))
        clerks.append(fmean(by_clerks(asked, queue.places)) / (queue.mean_tokens * STEP_NS))
    formula, found, ideal = queue.formula(), fmean(engine), fmean(clerks)
    print(
        f"\n{queue}: waits {found:.4f} services, by formula {formula:.4f} ({found / formula - 1:+.2%}),"
        f" by clerks {ideal:.4f} ({found / ideal - 1:+.3%})"
    )
    assert found == pytest.approx(formula, rel=0.02)
    assert found == pytest.approx(ideal, rel=0.005)
