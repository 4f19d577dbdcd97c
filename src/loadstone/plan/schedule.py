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
from loadstone.plan.rate import Segment
from loadstone.plan.store import WHEN_A_SLOT_FREES

Kind = Literal["warmup", "measured", "cooldown"]
Pattern = Literal["closed", "constant", "poisson", "gamma", "burst", "fixed", "users", "by-index"]
Steps = tuple[tuple[int, int], ...]
"""A step function: from the moment (ns from the start of the phase) on, so many. The first moment is 0."""

DEFAULT_GRACE_S = 30.0
ROWS_KEPT_FREE = 10_000_000
"""Numbers for the rows of a phase whose length nobody knows beforehand, when another one follows."""


class Phase(msgspec.Struct, frozen=True, kw_only=True):
    """One stretch of load.

    `requests`, `sessions` and `duration_ns` bound it (None: unbounded; where all are, its data does). `slots` caps the
    requests in flight (of conversations of several turns: the conversations), at most so many at any time, and
    `slot_steps` says how many when; without it every arrival is sent when it is due. `prefill` and `prefill_steps` are
    the same for requests before their first token. `grace_ns` is how long answers under way are awaited after the
    duration (None: until they end by themselves or time out).
    """

    name: str
    kind: Kind
    seamless: bool = False
    """It begins when the phase before has nothing more to send, while its last answers still come."""
    pattern: Pattern
    rate: float | None = None
    """Requests per second that it comes to; None where there is no such number."""
    curve: tuple[Segment, ...] = ()
    """The rate over time; empty in a closed loop, for a burst and for given times."""
    smoothness: float | None = None
    conditioned: bool = False
    users: int | None = None
    slots: int | None = None
    slot_steps: Steps = ()
    prefill: int | None = None
    prefill_steps: Steps = ()
    drain_queue: bool = False
    first_row: int = 0
    """Number of its first row in the plan."""
    requests: int | None = None
    sessions: int | None = None
    duration_ns: int | None = None
    grace_ns: int | None = None
    cancelled_share: float = 0.0
    cancel_after_ns: int = 0

    @property
    def timed(self) -> bool:
        """Whether requests have due times of their own: not in a closed loop."""
        return self.pattern != "closed"


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
        kind="measured",
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
        measured,
        name="warmup",
        kind="warmup",
        requests=load.warmup_request_count,
        duration_ns=None,
        grace_ns=None,
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
