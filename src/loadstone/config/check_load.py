"""Whether the settings of one stretch of load fit together: arrivals, ramps, limits, stops.

Two kinds of rules. A setting `without_effect` does nothing beside the others; one that makes the load `impossible`
asks for what there is not. Knows neither server nor prompts.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, pairwise

from loadstone.config.rules import Rule
from loadstone.config.tree import LoadConfig

WAYS = (
    "request_rate",
    "request_rate_series",
    "fixed_schedule",
    "user_centric_rate",
    "index_ramp_strategy",
)
"""Leaves that say when requests are sent; at most one of them may. Without any, a free slot does: a closed loop."""
_MOST_RATE = 1_000_000
LEAST_S = 0.001
"""Of a duration."""


def without_effect(load: LoadConfig) -> Iterator[Rule]:
    """Every rule about a setting that would do nothing."""
    yield from _one_way(load)
    yield from _arrivals(load)
    yield from _conditioned(load)
    yield from _schedule_and_users(load)
    yield from _ramps(load)
    yield from _limits(load)
    yield from _stops(load)


def impossible(load: LoadConfig) -> Iterator[Rule]:
    """Every rule about a setting that cannot be as asked."""
    yield from _series(load)
    yield from _needs(load)
    yield from _index_ramp(load)
    exponential = load.request_rate_ramp_strategy == "exponential" and load.request_rate_ramp_start == 0
    yield Rule("request_rate_ramp_start", exponential, "must be above 0 for an exponential ramp.")


def ways(load: LoadConfig) -> list[str]:
    """The leaves that say when requests are sent; none in a closed loop."""
    return [name for name in WAYS if getattr(load, name)]


def bounded(load: LoadConfig) -> bool:
    """Whether a count, sessions or a duration ends it."""
    return not (load.request_count is None and load.sessions is None and load.duration_s is None)


def _one_way(load: LoadConfig) -> Iterator[Rule]:
    given = ways(load)
    for one, other in combinations(WAYS, 2):
        why = "says when requests are sent too; give one of them."
        yield Rule(one, one in given and other in given, f"{{{other}}} {why}")
        yield Rule(other, one in given and other in given, f"{{{one}}} {why}")


def _arrivals(load: LoadConfig) -> Iterator[Rule]:
    without = _without_gaps(load)
    yield Rule("arrival_pattern", without is not None, f"has no effect {without}")
    by_index = load.index_ramp_strategy is not None
    yield Rule("arrival_smoothness", without is not None and not by_index, f"has no effect {without}")
    yield Rule(
        "arrival_smoothness",
        load.arrival_pattern not in (None, "gamma"),
        f"has no effect on {load.arrival_pattern} arrivals; set {{arrival_pattern}} gamma or leave it out.",
    )


def _without_gaps(load: LoadConfig) -> str | None:
    """Why no gaps are drawn from a process; None when they are."""
    if load.request_rate == "inf":
        return "when everything is sent at once; give a rate or leave it out."
    if load.request_rate is not None or load.request_rate_series:
        return None
    if load.fixed_schedule:
        return "on a fixed schedule; leave it out."
    if load.user_centric_rate is not None:
        return "with {user_centric_rate}; leave it out."
    if load.index_ramp_strategy is not None:
        return "with {index_ramp_strategy}, whose gaps are gamma; leave it out."
    return "in a closed loop; set {request_rate} or leave it out."


def _conditioned(load: LoadConfig) -> Iterator[Rule]:
    def rule(broken: bool, why: str) -> Rule:
        return Rule("conditioned", broken, why)

    yield rule(not isinstance(load.request_rate, float | int), "has no effect without a {request_rate}.")
    yield rule(load.arrival_pattern == "constant", "has no effect on constant arrivals; leave it out.")
    yield rule(load.request_rate_ramp_s is not None, "does not go with a ramp of the rate.")
    yield rule(
        load.duration_s is not None or load.sessions is not None,
        "is for a load that only {request_count} ends.",
    )


def _schedule_and_users(load: LoadConfig) -> Iterator[Rule]:
    for name in ("auto_offset", "start_ms", "end_ms"):
        why = "has no effect without {fixed_schedule}."
        yield Rule(f"fixed_schedule_{name}", not load.fixed_schedule, why)
    both = load.fixed_schedule_auto_offset and load.fixed_schedule_start_ms is not None
    yield Rule(
        "fixed_schedule_auto_offset", both, "load.fixed_schedule_start_ms says where to begin too; give one."
    )
    yield Rule("users", load.user_centric_rate is None, "has no effect without {user_centric_rate}.")
    users = load.user_centric_rate is not None and load.concurrency is not None
    yield Rule("concurrency", users, "does not go with {user_centric_rate}; {users} says how many.")
    yield Rule("user_centric_rate", users, "does not go with {concurrency}; leave that out.")


def _ramps(load: LoadConfig) -> Iterator[Rule]:
    flat = not isinstance(load.request_rate, float | int)
    yield Rule("request_rate_ramp_s", flat, "has no effect without a {request_rate}, with which it ends.")
    for name in ("concurrency", "prefill_concurrency"):
        ramp = f"{name}_ramp_s"
        yield Rule(
            ramp, getattr(load, name) is None, f"has no effect without {{{name}}}, with which it ends."
        )
        yield Rule(ramp, _level(load, name), "has no effect: it begins and ends with 1.")
    for name in ("request_rate", "concurrency", "prefill_concurrency"):
        ramp, start = f"{name}_ramp_s", f"{name}_ramp_start"
        for part in (start, f"{name}_ramp_strategy"):
            yield Rule(part, getattr(load, ramp) is None, f"has no effect without {{{ramp}}}.")
        level = getattr(load, start) == getattr(load, name)
        yield Rule(start, level, f"is {{{name}}} too, so that nothing changes.")
    for name in ("start", "end"):
        idle = load.index_ramp_strategy is None
        yield Rule(f"index_ramp_{name}", idle, "has no effect without {index_ramp_strategy}.")


def _level(load: LoadConfig, name: str) -> bool:
    """Whether a ramp of slots begins, at 1, where it ends."""
    return getattr(load, name) == 1 and getattr(load, f"{name}_ramp_start") is None


def _limits(load: LoadConfig) -> Iterator[Rule]:
    slots = load.concurrency or (None if ways(load) else 1)
    prefill = load.prefill_concurrency
    yield Rule(
        "prefill_concurrency",
        prefill is not None and slots is not None and prefill >= slots,
        f"has no effect with at most {slots} in flight; make it smaller, or {{concurrency}} greater.",
    )
    yield Rule("drain_queue", not ways(load), "has no effect in a closed loop, where nothing queues.")
    uncapped = load.concurrency is None and prefill is None
    yield Rule("drain_queue", uncapped, "has no effect without {concurrency}: nothing queues.")
    yield Rule("drain_queue", load.duration_s is None, "has no effect without {duration_s}.")
    yield Rule(
        "cancellation_delay_s",
        not load.cancellation_percent,
        "has no effect without {cancellation_percent}.",
    )


def _stops(load: LoadConfig) -> Iterator[Rule]:
    yield Rule(
        "grace_s",
        load.duration_s is None,
        "has no effect without {duration_s}; all answers are awaited anyway.",
    )


def _needs(load: LoadConfig) -> Iterator[Rule]:
    """Settings that cannot be without another one."""
    yield Rule("user_centric_rate", load.users is None, "needs {users}.")
    yield Rule(
        "conditioned", load.request_count is None, "needs {request_count}: it says when the last one is due."
    )
    endless = load.request_rate == "inf" and load.duration_s is not None and load.request_count is None
    yield Rule(
        "request_rate",
        endless and load.sessions is None,
        "sends everything at once, and a duration does not say how much; set {request_count}.",
    )
    yield Rule(
        "duration_s",
        load.duration_s is not None and load.duration_s < LEAST_S,
        f"must be at least {LEAST_S:g}; nothing is sent in less.",
    )
    start, end = load.fixed_schedule_start_ms, load.fixed_schedule_end_ms
    yield Rule(
        "fixed_schedule_end_ms",
        start is not None and end is not None and end <= start,
        f"must be after load.fixed_schedule_start_ms = {start or 0:g}.",
    )


def _series(load: LoadConfig) -> Iterator[Rule]:
    def rule(broken: bool, why: str) -> Rule:
        return Rule("request_rate_series", broken, why)

    moments = [at_s for at_s, _ in load.request_rate_series]
    rates = [rate for _, rate in load.request_rate_series]
    back = any(later < earlier for earlier, later in pairwise(moments))
    yield rule(back, "goes back in time; put its points in order.")
    thrice = any(first == third for first, third in zip(moments, moments[2:], strict=False))
    yield rule(thrice, "has three points at one moment; a jump has two.")
    yield rule(not any(rates), "must have a rate above 0.")
    yield rule(max(rates, default=0) > _MOST_RATE, f"must have rates of at most {_MOST_RATE:,}.")


def _index_ramp(load: LoadConfig) -> Iterator[Rule]:
    start, end = load.index_ramp_start, load.index_ramp_end
    yield Rule(
        "index_ramp_strategy",
        start is None or end is None,
        "needs {index_ramp_start} and {index_ramp_end}.",
    )
    yield Rule(
        "index_ramp_strategy",
        load.request_count is None,
        "needs {request_count}, over which the rate changes.",
    )
