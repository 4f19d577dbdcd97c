"""Sweeps over time: how much of something there was at every moment, from when its parts came and went.

Few enough events (two a request) are swept exactly: between two events a level is constant. What has an event a token
goes into a grid of equal steps, whose sums are exact and whose memory does not grow with the run. Knows no metric.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from loadstone.stats import Floats

Ints = NDArray[np.int64]
Window = tuple[int, int]
"""From when to when, ns."""

STEP_NS = 10_000_000
"""Steps of a grid: below the time of one step of most servers ..."""
MOST_STEPS = 1 << 18
"""... and longer where a window would have more of them: 1, 2 or 5 times a power of ten."""


class Levels(NamedTuple):
    """A step function: one entry a stretch of constant level, in time order."""

    lasted_ns: Floats
    number: Floats
    """How many there were."""
    rate: Floats
    """The sum of their rates; their number where none were given."""


def levels(came_ns: Ints, went_ns: Ints, window_ns: Window, rates: Floats | None = None) -> Levels:
    """The levels within a window under things that came and went, each with a rate while it was there.

    One that went as another came is one level: no stretch has no length.
    """
    came_ns = np.clip(came_ns, *window_ns)
    went_ns = np.maximum(np.clip(went_ns, *window_ns), came_ns)
    moments = np.concatenate((window_ns, came_ns, went_ns))
    order = np.argsort(moments, kind="stable")
    lasted_ns = np.diff(moments[order])
    there = lasted_ns > 0
    # A byte an event: of a million requests each array of numbers is 16 MB.
    step = np.repeat(np.array((0, 1, -1), np.int8), (2, len(came_ns), len(went_ns)))
    del came_ns, went_ns, moments
    number = np.cumsum(step[order], dtype=np.int32)[:-1][there].astype(float)
    rate = number
    if rates is not None:
        summed = np.cumsum(np.concatenate(((0.0, 0.0), rates, -rates))[order])[:-1][there]
        # What is left of a sum when all have gone is rounding.
        rate = np.where(number > 0, np.maximum(summed, 0.0), 0.0)
    return Levels(lasted_ns[there].astype(float), number, rate)


class Grid:
    """Amounts in equal steps of a window; moments count from its start. The last step may be shorter."""

    def __init__(self, lasts_ns: int, least_ns: int = STEP_NS, most: int = MOST_STEPS) -> None:
        self.step_ns = _step_ns(lasts_ns, least_ns, most)
        self.steps = max(-(-lasts_ns // self.step_ns), 1)
        self._sums = np.zeros(self.steps)
        self._rates = np.zeros(self.steps + 1)
        """By how much the rate of whole steps changes at the beginning of each, per ns."""

    def add(self, begin_ns: Ints, end_ns: Ints, amounts: Floats) -> None:
        """Amounts that are spread evenly over the time from `begin_ns` to `end_ns`; of no length, at that moment."""
        last = self.steps - 1
        first, final = np.minimum(begin_ns // self.step_ns, last), np.minimum(end_ns // self.step_ns, last)
        within = first == final
        np.add.at(self._sums, first[within], amounts[within])
        if within.all():
            return
        begin_ns, end_ns, first, final = (array[~within] for array in (begin_ns, end_ns, first, final))
        rates = amounts[~within] / (end_ns - begin_ns)
        np.add.at(self._sums, first, rates * ((first + 1) * self.step_ns - begin_ns))
        np.add.at(self._sums, final, rates * (end_ns - final * self.step_ns))
        # A rate over less than a step can be as high as a clock is fine, so it never enters the running sum.
        whole = final > first + 1
        np.add.at(self._rates, first[whole] + 1, rates[whole])
        np.subtract.at(self._rates, final[whole], rates[whole])

    def at(self, moments_ns: Ints, amounts: Floats) -> None:
        """Amounts that came at one moment each."""
        np.add.at(self._sums, np.minimum(moments_ns // self.step_ns, self.steps - 1), amounts)

    @property
    def sums(self) -> Floats:
        """The amount in every step."""
        found: Floats = np.maximum(self._sums + np.cumsum(self._rates)[:-1] * self.step_ns, 0.0)
        return found

    def lasts_ns(self, lasts_ns: int) -> Floats:
        """How long every step of a window of that length is."""
        lasts = np.full(self.steps, float(self.step_ns))
        lasts[-1] = lasts_ns - (self.steps - 1) * self.step_ns
        return lasts


def _step_ns(lasts_ns: int, least_ns: int, most: int) -> int:
    """The smallest of 1, 2, 5, 10, ... times the least step of which the window has at most so many."""
    step, factors = least_ns, 0
    while lasts_ns > step * most:
        step, factors = (step * 5 // 2 if factors % 3 == 1 else step * 2), factors + 1
    return step


def means(found: Levels, start_ns: int, edges_ns: Ints) -> Floats:
    """The mean number between each edge and the next, of levels whose window began at `start_ns` and holds the edges."""
    ends_ns = np.concatenate(([0.0], np.cumsum(found.lasted_ns)))
    areas = np.concatenate(([0.0], np.cumsum(found.number * found.lasted_ns)))
    at: Floats = np.interp((edges_ns - start_ns).astype(float), ends_ns, areas)
    mean: Floats = np.diff(at) / np.diff(edges_ns)
    return mean
