"""How far rates and limits that were to change had come when their phase stopped.

Pure: from the plan's `Phase` and how long it lasted. Ramps by the number of
the request come to their end with the last one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from loadstone.clock import SECOND_NS
from loadstone.plan.rate import Curve, Segment
from loadstone.plan.schedule import Phase, Steps

NEARLY = 0.05
"""Less than this share of a ramp's height is not worth a word."""


class CutShort(NamedTuple):
    """A change that did not come to its end."""

    of: str
    """What was to change: `rate`, `concurrency`, `prefill concurrency`."""
    end: float
    by_s: float
    """When it was to be there, from the start of its phase."""
    reached: float
    """Where it was when the phase stopped."""


def cut_short(phase: Phase, lasted_s: float) -> Iterator[CutShort]:
    """The changes of a phase that had not come to their end after `lasted_s`."""
    if phase.curve:
        rates = [rate for segment in phase.curve for rate in (segment.rate, segment.end_rate)]
        last = phase.curve[-1]
        yield from _short("rate", rates, last.start_s + last.span_s, lasted_s, _rate(phase.curve, lasted_s))
    for of, steps in (("concurrency", phase.slot_steps), ("prefill concurrency", phase.prefill_steps)):
        if steps:
            levels = [level for _, level in steps]
            yield from _short(of, levels, steps[-1][0] / SECOND_NS, lasted_s, _level(steps, lasted_s))


def _short(
    of: str, values: Sequence[float], by_s: float, lasted_s: float, reached: float
) -> Iterator[CutShort]:
    left = abs(values[-1] - reached)
    if by_s > lasted_s and left > NEARLY * (max(values) - min(values)):
        yield CutShort(of, values[-1], by_s, reached)


def rate_at(segment: Segment, after_s: float) -> float:
    """The rate of a segment so many seconds after its start."""
    if not segment.span_s:
        return segment.rate
    share = min(after_s / segment.span_s, 1.0)
    if segment.course == "exponential":
        return float(segment.rate * (segment.end_rate / segment.rate) ** share)
    return segment.rate + (segment.end_rate - segment.rate) * share


def _rate(curve: Curve, at_s: float) -> float:
    """The rate at a moment; before the first segment it is that of its start."""
    now = next((segment for segment in reversed(curve) if segment.start_s <= at_s), curve[0])
    return rate_at(now, max(at_s - now.start_s, 0.0))


def _level(steps: Steps, at_s: float) -> int:
    return [level for at_ns, level in steps if at_ns <= at_s * SECOND_NS][-1]
