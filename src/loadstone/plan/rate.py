"""A rate over time: pieces that are constant, linear or exponential, and the exact inverse of their integral.

The n-th arrival of a process of unit rate becomes one of this rate by going through the inverse (time rescaling).
Pure.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Literal, NamedTuple

import msgspec

Course = Literal["linear", "exponential"]


class Segment(msgspec.Struct, frozen=True, kw_only=True):
    """The rate from `start_s` (of the phase) on, until the next segment begins; the last one goes on for ever.

    From `rate` at its start to `end_rate` after `span_s`, along a line or an exponential, and at `end_rate` from then
    on; `span_s` 0: `rate` for ever.
    """

    start_s: float
    rate: float
    end_rate: float
    span_s: float = 0.0
    course: Course = "linear"


Curve = tuple[Segment, ...]
"""A rate over time, in the order of the segments' starts; before the first one it is 0."""


def constant(rate: float) -> Curve:
    """The same rate for ever."""
    return (Segment(start_s=0.0, rate=rate, end_rate=rate),)


def ramp(start: float, end: float, span_s: float, course: Course = "linear") -> Curve:
    """From `start` to `end` within `span_s`, up or down, then `end` for ever.

    Linear: start + (end - start) t / span; exponential: start (end / start)^(t / span), which raises `ValueError`
    where one of them is 0.
    """
    if course == "exponential" and min(start, end) <= 0:
        raise ValueError(f"an exponential ramp from {start:g} to {end:g}: both ends must be above 0")
    return (Segment(start_s=0.0, rate=start, end_rate=end, span_s=span_s, course=course),)


def series(points: Sequence[tuple[float, float]]) -> Curve:
    """Through the points (s, rate): linear between them, before the first as the first, after the last as the last.

    Two points of the same moment are a jump. Raises `ValueError` where there is no point, or moments go back.
    """
    if not points or any(later < earlier for (earlier, _), (later, _) in pairwise(points)):
        raise ValueError("a series of rates must have points, none of them before the one it follows")
    between = (
        Segment(start_s=at_s, rate=rate, end_rate=end_rate, span_s=until_s - at_s)
        for (at_s, rate), (until_s, end_rate) in pairwise(points)
        if until_s > at_s
    )
    (first_s, first), (last_s, last) = points[0], points[-1]
    before = constant(first) if first_s > 0 else ()
    return (*before, *between, Segment(start_s=last_s, rate=last, end_rate=last))


def passed(curve: Curve, t_s: float) -> float:
    """How many arrivals the rate comes to by `t_s`: its integral from 0 on."""
    begun = (piece for piece in _pieces(curve) if piece.start_s < t_s)
    return math.fsum(piece.area(min(t_s - piece.start_s, piece.length_s)) for piece in begun)


def when(curve: Curve, n: float) -> float:
    """The last moment, s, by which the rate has come to `n`; infinity where it never comes to more.

    The inverse of `passed`. The last one, and not the first: at the end of a stretch without rate that begins after
    exactly `n`, since nothing may arrive within it.
    """
    return next(moments(curve, (n,)), math.inf)


def moments(curve: Curve, positions: Iterable[float]) -> Iterator[float]:
    """The moment, s, of each of the positions, which must not go back; ends with the first that has none.

    Goes through the curve once, however many positions there are.
    """
    pieces = _pieces(curve)
    piece = next(pieces)
    before, total = 0.0, piece.area(piece.length_s)
    for position in positions:
        while position - before >= total:
            if math.isinf(piece.length_s):
                return
            before += total
            piece = next(pieces)
            total = piece.area(piece.length_s)
        yield piece.start_s + piece.reach(position - before)


class _Piece(NamedTuple):
    """The first `length_s` of a course from `rate` to `end_rate` within `span_s`, or of a level (`growth` 0).

    `growth` is, per second, the slope of a line or the logarithmic growth of an exponential.
    """

    start_s: float
    length_s: float
    rate: float
    growth: float = 0.0
    exponential: bool = False

    def area(self, x_s: float) -> float:
        """The integral over its first `x_s`."""
        if not self.growth:
            return self.rate * x_s if self.rate else 0.0
        if self.exponential:
            return self.rate * math.expm1(self.growth * x_s) / self.growth
        return x_s * (self.rate + self.growth * x_s / 2)

    def reach(self, area: float) -> float:
        """After how many seconds the integral is `area`, which is less than that of the whole piece.

        Of a line, the root of the quadratic that loses no digits however flat it is.
        """
        if area <= 0:
            return 0.0
        if not self.growth:
            return area / self.rate
        if self.exponential:
            grown = max(area * self.growth / self.rate, -1.0 + math.ulp(0.5))
            return min(math.log1p(grown) / self.growth, self.length_s)
        end_rate = math.sqrt(max(self.rate * self.rate + 2 * self.growth * area, 0.0))
        return min(2 * area / (self.rate + end_rate), self.length_s)


def _pieces(curve: Curve) -> Iterator[_Piece]:
    """The pieces of a curve without gaps; the last one goes on for ever. Of no curve, one without rate."""
    if not curve:
        yield _Piece(0.0, math.inf, 0.0)
    starts = [*(segment.start_s for segment in curve), math.inf]
    for segment, (start_s, until_s) in zip(curve, pairwise(starts), strict=True):
        moving_s = min(segment.span_s, until_s - start_s)
        if moving_s > 0:
            yield _Piece(start_s, moving_s, segment.rate, _growth(segment), segment.course == "exponential")
        level = segment.end_rate if segment.span_s else segment.rate
        yield _Piece(start_s + moving_s, until_s - start_s - moving_s, level)


def _growth(segment: Segment) -> float:
    if segment.course == "exponential":
        return (math.log(segment.end_rate) - math.log(segment.rate)) / segment.span_s
    return (segment.end_rate - segment.rate) / segment.span_s
