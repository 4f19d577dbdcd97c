"""Which of several servers and models a conversation goes to, and which requests are cancelled.

Pure, and without memory: the choice for a conversation depends on its number and a seed only, so any part of a plan can
be made without the one before it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from itertools import accumulate
from typing import Literal

import msgspec

from loadstone.dist import uniform
from loadstone.plan.schedule import Phase
from loadstone.plan.store import ANY_TARGET


class Choice(msgspec.Struct, frozen=True, kw_only=True):
    """How one of `among` is chosen.

    `strategy` None: weighted where there are weights, else round-robin. `weights` are as many as there are to choose
    among, or none, which counts as equal ones.
    """

    among: int = 1
    strategy: Literal["round-robin", "random", "weighted", "least-in-flight"] | None = None
    weights: tuple[float, ...] = ()


def chooser(choice: Choice, seed: int) -> Callable[[int], int]:
    """What a conversation's number chooses: a position from 0 on, or `ANY_TARGET`, which is left to the sender.

    Round-robin: number mod `among`. Random and weighted: u = uniform(seed, number), and position i where the sum of the
    weights up to i first exceeds u times their sum.
    """
    among = choice.among
    if among <= 1:
        return lambda _number: 0
    match choice.strategy or ("weighted" if choice.weights else "round-robin"):
        case "least-in-flight":
            return lambda _number: ANY_TARGET
        case "round-robin":
            return lambda number: number % among
        case "random":
            return lambda number: int(uniform(seed, number) * among)
        case _:
            edges = list(accumulate(choice.weights or (1.0,) * among))
            return lambda number: bisect_right(edges, uniform(seed, number) * edges[-1], hi=among - 1)


def canceller(phase: Phase, seed: int) -> Callable[[int], bool]:
    """Whether the request at a position of the phase is cancelled: when uniform(seed, position) < the phase's share.

    Never in a warm-up; in a cooldown as before, since the load is to stay as it was.
    """
    share = phase.cancelled_share
    if phase.kind == "warmup" or not share:
        return lambda _position: False
    return lambda position: uniform(seed, position) < share
