"""The shape of the load as data: phases, each with its arrivals, slots and the rule that stops it.

Made from the load's configuration before the clock starts; nothing here waits or sends.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from itertools import islice, repeat, takewhile
from random import Random

import msgspec

from loadstone.clock import SECOND_NS
from loadstone.config import InputConfig, LoadConfig
from loadstone.config.phases import Kind as Kind
from loadstone.config.phases import PhaseLoad, phase_loads
from loadstone.plan import arrivals, seeds, shape, steps, users
from loadstone.plan.arrivals import IndexRamp
from loadstone.plan.dated import Dated as Dated
from loadstone.plan.dated import arriving, recorded
from loadstone.plan.rate import Curve
from loadstone.plan.shape import Pattern as Pattern
from loadstone.plan.steps import Steps as Steps
from loadstone.plan.store import WHEN_A_SLOT_FREES
from loadstone.plan.turn import Conversation

DEFAULT_GRACE_S = 30.0
ROWS_KEPT_FREE = 1_000_000_000
"""Numbers for the rows of a phase whose length nobody knows beforehand, when another one follows: days of any load."""


class Phase(msgspec.Struct, frozen=True, kw_only=True):
    """One stretch of load.

    `requests`, `sessions` and `duration_ns` bound it (None: unbounded; where all are, its data does). `slots` caps the
    requests in flight (of conversations of several turns: the conversations), at most so many at any time, and
    `slot_steps` says how many when (without a ramp it has one step); `slots` None: every arrival is sent when it is due.
    `prefill` and `prefill_steps` are the same for requests before their first token. `grace_ns` is how long answers
    under way are awaited after the duration (None: until they end by themselves or time out).
    """

    name: str
    kind: Kind
    seamless: bool = False
    """It begins when the phase before has nothing more to send, while its last answers still come."""
    pattern: Pattern
    rate: float | None = None
    """Requests per second that it comes to in the end; None where there is no such number."""
    curve: Curve = ()
    """The rate over time; empty in a closed loop, for a burst, for given times and for a ramp by index."""
    index_ramp: IndexRamp | None = None
    smoothness: float | None = None
    """Of gamma gaps; None where gaps are not gamma."""
    conditioned: bool = False
    """The last of `requests` arrivals is due where the rate has come to so many, exactly."""
    users: int | None = None
    origin_ns: int | None = 0
    """Of given times: the one at which the phase begins; None: the first there is. What is earlier is left out."""
    latest_ns: int | None = None
    """Of given times: the last one that is not left out."""
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
    one_turn: bool = True
    """Every conversation is one request."""

    @property
    def timed(self) -> bool:
        """Whether requests have due times of their own: not in a closed loop."""
        return self.pattern != "closed"


def phases(load: LoadConfig, data: InputConfig = InputConfig()) -> list[Phase]:
    """The phases that a load configuration asks for, in their order. Raises `UsageError` where they do not fit together.

    Defaults: concurrency 1 when nothing says when requests are sent; Poisson when a rate is given without a pattern,
    gamma when a smoothness is; max(50, 2 x concurrency) requests when nothing stops the measured phase, where the
    `data` has no end of its own.
    """
    found: list[Phase] = []
    first_row = 0
    for asked in phase_loads(load):
        phase = _phase(asked, first_row, data)
        found.append(phase)
        first_row += _rows_kept(phase)
    return found


def _phase(asked: PhaseLoad, first_row: int, data: InputConfig) -> Phase:
    load = asked.load
    pattern, curve, index_ramp = shape.pattern(load), shape.curve(load), shape.index_ramp(load)
    slots, prefill = shape.slots(load), shape.prefill(load)
    return Phase(
        name=asked.name,
        kind=asked.kind,
        seamless=asked.seamless,
        pattern=pattern,
        rate=curve[-1].end_rate if curve else index_ramp.end if index_ramp else None,
        curve=curve,
        index_ramp=index_ramp,
        smoothness=(load.arrival_smoothness or 1.0) if pattern in ("gamma", "by-index") else None,
        conditioned=load.conditioned,
        users=load.users,
        origin_ns=None if load.fixed_schedule_auto_offset else _ms(load.fixed_schedule_start_ms) or 0,
        latest_ns=_ms(load.fixed_schedule_end_ms),
        slots=steps.most(slots) if slots else None,
        slot_steps=slots,
        prefill=steps.most(prefill) if prefill else None,
        prefill_steps=prefill,
        drain_queue=load.drain_queue,
        first_row=first_row,
        requests=_requests(load, data),
        one_turn=data.file is None and data.turns_mean == 1 and not data.turns_stddev,
        sessions=load.sessions,
        duration_ns=_ns(load.duration_s),
        grace_ns=_grace_ns(asked),
        cancelled_share=load.cancellation_percent / 100,
        cancel_after_ns=round(load.cancellation_delay_s * SECOND_NS),
    )


def _requests(load: LoadConfig, data: InputConfig) -> int | None:
    """The count asked for, or the default where nothing else ends the phase."""
    if load.request_count is not None:
        return load.request_count
    if load.sessions is not None or load.duration_s is not None or data.file is not None:
        return None
    return max(50, 2 * (load.concurrency or 1))


def _grace_ns(asked: PhaseLoad) -> int | None:
    """After a duration; a warm-up, unless it is told otherwise, waits for all its answers."""
    if asked.load.duration_s is None:
        return None
    if asked.load.grace_s is None:
        return None if asked.kind == "warmup" else _ns(DEFAULT_GRACE_S)
    return _ns(asked.load.grace_s)


def _rows_kept(phase: Phase) -> int:
    """The numbers that a phase takes: as many as it has rows, where that is known (sessions go on to their last turn)."""
    return ROWS_KEPT_FREE if phase.requests is None or phase.sessions is not None else phase.requests


def due_times(phase: Phase, seed: int) -> Iterator[int]:
    """When conversations begin, ns from the start of the phase; all `WHEN_A_SLOT_FREES` in a closed loop.

    Endless, but where the rate ends at 0, or the arrivals are made for a given number of them (`conditioned`, by index).
    Raises `ValueError` for given times and for users, whose conversations say when they begin; see `dated`.
    """
    if phase.pattern in ("fixed", "users"):
        raise ValueError(f"{phase.name}: when conversations begin depends on them")
    if phase.pattern in ("closed", "burst"):
        return repeat(WHEN_A_SLOT_FREES if phase.pattern == "closed" else 0)
    random = seeds.stream(seed, f"arrivals.{phase.name}")
    if phase.index_ramp is not None:
        smoothness = phase.smoothness or 1.0
        return arrivals.in_ns(arrivals.by_index(phase.index_ramp, _arrivals(phase), smoothness, random))
    return arrivals.rescaled(phase.curve, _positions(phase, random))


def _positions(phase: Phase, random: Random) -> Iterator[float]:
    """The arrivals of a phase at unit rate."""
    if phase.pattern == "constant":
        return arrivals.even()
    drawn = (
        arrivals.gamma(phase.smoothness or 1.0, random)
        if phase.pattern == "gamma"
        else arrivals.poisson(random)
    )
    return arrivals.conditioned(drawn, _arrivals(phase)) if phase.conditioned else drawn


def _arrivals(phase: Phase) -> int:
    """How many conversations begin at most."""
    return min(count for count in (phase.requests, phase.sessions) if count is not None)


def dated(phase: Phase, seed: int, conversations: Iterator[Conversation]) -> Iterator[Dated]:
    """The conversations that a phase sends, in the order in which they begin, with the due times of their turns.

    Ends with `sessions`, with the arrivals, with the conversations, or with the first one that would begin when the
    duration is over. Counts no requests, but for users, who stop at one moment. Conversations with given times come ordered by that of their first turn.
    """
    found = takewhile(lambda one: _begins_in(phase, one), _all_dated(phase, seed, conversations))
    return islice(found, phase.sessions)


def _all_dated(phase: Phase, seed: int, conversations: Iterator[Conversation]) -> Iterator[Dated]:
    if phase.pattern == "fixed":
        return recorded(conversations, phase.origin_ns, phase.latest_ns)
    if phase.pattern == "users":
        return users.centric(conversations, phase.users or 1, phase.curve, phase.requests)
    return arriving(conversations, due_times(phase, seed))


def _begins_in(phase: Phase, one: Dated) -> bool:
    return phase.duration_ns is None or one.due_ns[0] < phase.duration_ns


def first_due_ns(phase: Phase, seed: int, conversations: Iterator[Conversation]) -> int | None:
    """When the first of the conversations begins, also when the duration is over by then; None: none ever does."""
    first = next(_all_dated(phase, seed, conversations), None)
    return None if first is None else first.due_ns[0]


def arrives(phase: Phase) -> bool:
    """Whether all requests have due times that are drawn, so that `due_times` tells them."""
    return phase.one_turn and phase.pattern not in ("closed", "fixed", "users")


def last_due_ns(phase: Phase, seed: int) -> int | None:
    """When the last of `requests` is due: then all have arrived.

    A phase that is bounded by a count has nothing more to send from then on, so that the next may begin. None where no
    such moment is known beforehand: without a count, in a closed loop, for given times and users, and where answers
    decide when later turns come.
    """
    if phase.requests is None or not arrives(phase):
        return None
    arrived = deque(islice(due_times(phase, seed), phase.requests), maxlen=1)
    return arrived[0] if arrived else None


def _ns(seconds: float | None) -> int | None:
    return None if seconds is None else round(seconds * SECOND_NS)


def _ms(milliseconds: float | None) -> int | None:
    return None if milliseconds is None else round(milliseconds * SECOND_NS / 1000)
