"""The shape of the load as data: phases, each with its arrivals, slots and the rule that stops it.

Made from the load's configuration before the clock starts; nothing here waits or sends.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import repeat
from typing import Literal

import msgspec

from loadstone.clock import SECOND_NS
from loadstone.config import LoadConfig
from loadstone.plan import arrivals, seeds
from loadstone.plan.store import WHEN_A_SLOT_FREES

PhaseName = Literal["warmup", "measured"]
Pattern = Literal["closed", "constant", "poisson", "gamma"]

DEFAULT_GRACE_S = 30.0


class Phase(msgspec.Struct, frozen=True, kw_only=True):
    """One stretch of load.

    `requests` and `duration_ns` bound it (None: unbounded; not both None). `slots` caps the requests in
    flight; without it every arrival is sent when it is due. `grace_ns` is how long answers
    under way are awaited after the duration (None: until they end by themselves or time out).
    """

    name: PhaseName
    pattern: Pattern
    rate: float | None
    smoothness: float | None
    slots: int | None
    requests: int | None
    duration_ns: int | None
    grace_ns: int | None


def phases(load: LoadConfig) -> list[Phase]:
    """The phases that a load configuration asks for: warm-up, if any, and the measured one.

    Defaults: concurrency 1 when no rate is given; Poisson when a rate is given without a pattern, gamma when a
    smoothness is; max(50, 2 x concurrency) requests when neither a count nor a duration stops the run.
    """
    slots = load.concurrency if load.request_rate else load.concurrency or 1
    count = load.request_count
    if count is None and load.duration_s is None:
        count = max(50, 2 * (slots or 1))
    measured = Phase(
        name="measured",
        pattern=pattern(load),
        rate=load.request_rate,
        smoothness=load.arrival_smoothness or 1.0,
        slots=slots,
        requests=count,
        duration_ns=_ns(load.duration_s),
        grace_ns=_ns(DEFAULT_GRACE_S if load.grace_s is None else load.grace_s) if load.duration_s else None,
    )
    if not load.warmup_request_count:
        return [measured]
    warmup = msgspec.structs.replace(
        measured, name="warmup", requests=load.warmup_request_count, duration_ns=None, grace_ns=None
    )
    return [warmup, measured]


def pattern(load: LoadConfig) -> Pattern:
    """Which arrival process a load configuration means."""
    if load.request_rate is None:
        return "closed"
    if load.arrival_pattern is None:
        return "gamma" if load.arrival_smoothness is not None else "poisson"
    return load.arrival_pattern


def due_times(phase: Phase, seed: int) -> Iterator[int]:
    """The due times of a phase in ns from its start: endless; all `WHEN_A_SLOT_FREES` in a closed loop."""
    if phase.pattern == "closed" or phase.rate is None:
        return repeat(WHEN_A_SLOT_FREES)
    if phase.pattern == "constant":
        return arrivals.constant(phase.rate)
    random = seeds.stream(seed, f"arrivals.{phase.name}")
    if phase.pattern == "poisson":
        return arrivals.poisson(phase.rate, random)
    return arrivals.gamma(phase.rate, phase.smoothness or 1.0, random)


def _ns(seconds: float | None) -> int | None:
    return None if seconds is None else round(seconds * SECOND_NS)
