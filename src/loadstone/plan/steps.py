"""Slots over time: step functions for ramps, and one worker's share of them. Pure."""

from __future__ import annotations

import math

from loadstone.clock import SECOND_NS
from loadstone.plan.rate import Course

Steps = tuple[tuple[int, int], ...]
"""A step function: from the moment (ns from the start of the phase) on, so many. The first moment is 0."""


def level(slots: int) -> Steps:
    """The same number for ever."""
    return ((0, slots),)


def ramp(start: int, end: int, span_s: float, course: Course = "linear") -> Steps:
    """From `start` to `end` within `span_s`, up or down by one slot at a time, then `end` for ever; both are above 0.

    At every moment the whole number next to the continuous ramp: start + (end - start) t / span, or
    start (end / start)^(t / span). The number changes where that passes a half, so the area below the steps is the
    area below the ramp (of a line exactly, of an exponential as nearly as whole numbers allow).
    """
    up = 1 if end > start else -1
    steps = {0: start}
    for slots in range(start + up, end + up, up):
        share = _share_of_span(start, end, slots - up / 2, course)
        steps[round(share * span_s * SECOND_NS)] = slots
    return tuple(steps.items())


def _share_of_span(start: int, end: int, passed: float, course: Course) -> float:
    """After which share of the span the continuous ramp passes a value."""
    if course == "exponential":
        return math.log(passed / start) / math.log(end / start)
    return (passed - start) / (end - start)


def share(steps: Steps, worker: int, workers: int) -> Steps:
    """One worker's part of the slots, as even as whole numbers allow; the parts of all add up exactly at every moment.

    Of n slots it has n // workers, and one more when it is among the first n % workers.
    """
    own: list[tuple[int, int]] = []
    for at_ns, slots in steps:
        part = slots // workers + (worker < slots % workers)
        if not own or own[-1][1] != part:
            own.append((at_ns, part))
    return tuple(own)


def most(steps: Steps) -> int:
    """The greatest number of slots that there ever are."""
    return max(slots for _, slots in steps)
