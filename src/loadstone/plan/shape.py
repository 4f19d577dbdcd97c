"""What a load configuration says of arrivals and limits: the process, the rate over time, the slots over time. Pure."""

from __future__ import annotations

from typing import Literal

from loadstone.config import LoadConfig
from loadstone.plan import rate, steps
from loadstone.plan.arrivals import IndexRamp
from loadstone.plan.rate import Course, Curve
from loadstone.plan.steps import Steps

Pattern = Literal["closed", "constant", "poisson", "gamma", "burst", "fixed", "users", "by-index"]


def pattern(load: LoadConfig) -> Pattern:
    """How conversations arrive; Poisson where nothing says how, gamma where a smoothness is given."""
    if load.fixed_schedule:
        return "fixed"
    if load.user_centric_rate is not None:
        return "users"
    if load.index_ramp_strategy is not None:
        return "by-index"
    if load.request_rate == "inf":
        return "burst"
    if load.request_rate is None and not load.request_rate_series:
        return "closed"
    if load.arrival_pattern is None:
        return "gamma" if load.arrival_smoothness is not None else "poisson"
    return load.arrival_pattern


def curve(load: LoadConfig) -> Curve:
    """The rate over time; empty where there is none: in a closed loop, for a burst, given times and a ramp by index."""
    if load.request_rate_series:
        return rate.series(load.request_rate_series)
    if load.user_centric_rate is not None:
        return rate.constant(load.user_centric_rate)
    if load.request_rate is None or load.request_rate == "inf":
        return ()
    if load.request_rate_ramp_s is None:
        return rate.constant(load.request_rate)
    course, start = load.request_rate_ramp_strategy, load.request_rate_ramp_start
    if start is None:
        start = 0.0 if course == "linear" else load.request_rate / 10
    return rate.ramp(start, load.request_rate, load.request_rate_ramp_s, course)


def index_ramp(load: LoadConfig) -> IndexRamp | None:
    """The rates at the first and the last request; None where the rate does not go by the number of the request."""
    course, start, end = load.index_ramp_strategy, load.index_ramp_start, load.index_ramp_end
    if course is None or start is None or end is None:
        return None
    return IndexRamp(start=start, end=end, course=course)


def slots(load: LoadConfig) -> Steps:
    """Requests in flight at most, over time; empty without a limit. A closed loop has one slot where nothing is said."""
    if load.concurrency is None and pattern(load) != "closed":
        return ()
    start = load.concurrency_ramp_start or 1
    return _limit(load.concurrency or 1, load.concurrency_ramp_s, start, load.concurrency_ramp_strategy)


def prefill(load: LoadConfig) -> Steps:
    """Requests before their first token at most, over time; empty without a limit."""
    if load.prefill_concurrency is None:
        return ()
    span_s, start = load.prefill_concurrency_ramp_s, load.prefill_concurrency_ramp_start or 1
    return _limit(load.prefill_concurrency, span_s, start, load.prefill_concurrency_ramp_strategy)


def _limit(level: int, ramp_s: float | None, start: int, course: Course) -> Steps:
    return steps.level(level) if ramp_s is None else steps.ramp(start, level, ramp_s, course)
