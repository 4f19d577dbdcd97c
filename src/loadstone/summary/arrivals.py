"""The arrival process of a phase, as data and in words.

Pure: from the plan's `Phase`, which the configuration gives again whenever a report is made.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from loadstone.clock import SECOND_NS
from loadstone.figures import brief
from loadstone.metrics import Tables
from loadstone.plan.schedule import Phase, Steps
from loadstone.report import Arrivals

DRAWN = ("poisson", "gamma")
"""Patterns whose gaps are drawn, and which can be stretched to end at a given moment."""
GIVEN = {"burst": "everything at once", "fixed": "at given times"}


def arriving(tables: Tables) -> str:
    """What arrives at the rates of a load: requests, or conversations where they have several turns."""
    return "conversations" if (tables.requests["turn"] > 0).any() else "requests"


def arrivals(phase: Phase, what: str = "requests") -> Arrivals:
    """What a report tells of a phase's arrival process; `what` arrives: requests, or conversations of several turns."""
    return Arrivals(
        phase=phase.name,
        words=words(phase, what),
        pattern=phase.pattern,
        rate=phase.rate,
        curve=tuple(msgspec.to_builtins(segment) for segment in phase.curve),
        index_ramp=None if phase.index_ramp is None else msgspec.to_builtins(phase.index_ramp),
        smoothness=phase.smoothness,
        conditioned=phase.conditioned if phase.pattern in DRAWN else None,
        users=phase.users,
        slots=phase.slots,
        slot_steps=_in_seconds(phase.slot_steps),
        prefill=phase.prefill,
        prefill_steps=_in_seconds(phase.prefill_steps),
        cancelled_share=phase.cancelled_share,
        cancel_after_s=phase.cancel_after_ns / SECOND_NS,
    )


def words(phase: Phase, what: str = "requests") -> str:
    """The load in a few words: `concurrency 8`, `poisson 10 requests/s, unconditioned, at most 64 in flight`."""
    return ", ".join([_process(phase, what), *_limits(phase, what)])


def _process(phase: Phase, what: str) -> str:
    if phase.pattern == "closed":
        return f"concurrency {_levels(phase.slots or 1, phase.slot_steps)}"
    if phase.pattern in GIVEN:
        return GIVEN[phase.pattern]
    if phase.pattern == "users":
        return f"{phase.users} users, {_rate(phase, 'requests')}"
    shape = "" if phase.smoothness is None else f" (shape {phase.smoothness:g})"
    if phase.index_ramp is not None:
        ramp = phase.index_ramp
        return f"gamma{shape} {ramp.start:g} to {ramp.end:g} {what}/s (by number, {ramp.course})"
    drawn = (", conditioned" if phase.conditioned else ", unconditioned") if phase.pattern in DRAWN else ""
    return f"{phase.pattern}{shape} {_rate(phase, what)}{drawn}"


def _limits(phase: Phase, what: str) -> Iterator[str]:
    """The limits in words. A slot holds a conversation to its last turn, also while nothing of it is in flight."""
    if phase.slots is not None and phase.timed:
        held = "in flight" if what == "requests" else what
        yield f"at most {_levels(phase.slots, phase.slot_steps)} {held}"
    if phase.prefill is not None:
        yield f"at most {_levels(phase.prefill, phase.prefill_steps)} before their first token"
    if phase.cancelled_share:
        after = brief(phase.cancel_after_ns / SECOND_NS)
        yield f"{100 * phase.cancelled_share:g} % cancelled {after} s after they were sent"


def _levels(most: int, steps: Steps) -> str:
    """A limit; of one that changes where it begins and ends, and when it has got there."""
    if len({level for _, level in steps}) < 2:
        return f"{most}"
    (_, first), (last_ns, last) = steps[0], steps[-1]
    return f"{first} to {last} (by {brief(last_ns / SECOND_NS)} s)"


def _rate(phase: Phase, what: str) -> str:
    """The rate; of a ramp its two ends and its length, of any other curve its lowest and highest rate."""
    moving = [segment for segment in phase.curve if segment.span_s and segment.rate != segment.end_rate]
    if not moving:
        return f"{phase.rate:g} {what}/s"
    if len(moving) == 1 and phase.curve[0] is moving[0]:
        (ramp,) = moving
        course = ", exponential" if ramp.course == "exponential" else ""
        return f"{ramp.rate:g} to {ramp.end_rate:g} {what}/s (over {brief(ramp.span_s)} s{course})"
    rates = [rate for segment in phase.curve for rate in (segment.rate, segment.end_rate)]
    return f"{min(rates):g} to {max(rates):g} {what}/s (a curve of {len(phase.curve)} pieces)"


def _in_seconds(steps: Steps) -> tuple[tuple[float, int], ...]:
    """The steps of a limit that changes; none of one that does not."""
    return tuple((at_ns / SECOND_NS, level) for at_ns, level in steps) if len(steps) > 1 else ()
