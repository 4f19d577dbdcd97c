"""Which of several engines a request goes to."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

from loadstone.sim.engine import Engine
from loadstone.sim.sequence import Sequence as Request

Policy = Literal["round-robin", "least-loaded", "prefix-affine"]
WAITING_WEIGHT = 4
"""One that waits counts as much as so many that run (vLLM's data-parallel balancing)."""
UNEVEN_FACTOR = 1.5
UNEVEN_REQUESTS = 32
"""An engine with so many times and so many more requests than the least loaded one gets none for its prefixes' sake."""

Choice = Callable[[Request], int]


def router(policy: Policy, engines: Sequence[Engine[Request]]) -> Choice:
    """Chooses for one request after the other, by position."""
    if len(engines) == 1:
        return lambda _: 0
    if policy == "least-loaded":
        return lambda _: _least_loaded(engines)
    return _affine(engines) if policy == "prefix-affine" else _in_turn(len(engines))


def _in_turn(count: int) -> Choice:
    last = -1

    def choose(_: Request) -> int:
        nonlocal last
        last = (last + 1) % count
        return last

    return choose


def _load(engine: Engine[Request]) -> int:
    return WAITING_WEIGHT * engine.queued + len(engine.running)


def _least_loaded(engines: Sequence[Engine[Request]]) -> int:
    """The first of those with the least load."""
    return min(range(len(engines)), key=lambda at: _load(engines[at]))


def _affine(engines: Sequence[Engine[Request]]) -> Choice:
    """The engine that has the most of a request's beginning, unless it is far more loaded than another one."""

    def choose(request: Request) -> int:
        least = _least_loaded(engines)
        found = [engine.blocks.match(request.keys, len(request.keys)) for engine in engines]
        best = max(range(len(engines)), key=lambda at: (found[at], -_load(engines[at])))
        load, lowest = _load(engines[best]), _load(engines[least])
        uneven = load > UNEVEN_FACTOR * lowest and load > lowest + UNEVEN_REQUESTS
        return least if uneven or not found[best] else best

    return choose
