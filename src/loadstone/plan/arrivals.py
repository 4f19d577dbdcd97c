"""Arrival processes of unit rate: endless, increasing positions; and the due times that a rate makes of them.

Position n is where a rate has come to n arrivals, so that any process becomes one of any rate over time
(`loadstone.plan.rate`), and its n-th arrival does not depend on how many follow. Pure: the randomness is handed in. The
first gap is drawn like every other, and the n-th Poisson arrival is not forced to n / rate unless that is asked for
(`conditioned`).
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Iterator
from itertools import accumulate, count, islice
from random import Random

import msgspec

from loadstone.clock import SECOND_NS
from loadstone.plan.rate import Course, Curve, moments

LATEST_NS = 1 << 60
"""36 years; what would arrive later does so then, and every sum of times stays within 64 bits."""

LEAST_SMOOTHNESS = 1e-200
"""Gaps less smooth than that are 0 but for one in a lifetime; their sum stays a number."""


def even() -> Iterator[float]:
    """0, 1, 2, ...: each computed from its index, so that no error accumulates."""
    return map(float, count())


def poisson(random: Random) -> Iterator[float]:
    """Exponential gaps of mean 1."""
    return accumulate(random.expovariate(1.0) for _ in count())


def gamma(smoothness: float, random: Random) -> Iterator[float]:
    """Gamma gaps of shape s = `smoothness` and scale 1 / s: mean 1, CV 1 / sqrt(s).

    The same meaning as AIPerf's `--arrival-smoothness` and vLLM's `--burstiness`; s = 1 is Poisson.
    """
    return accumulate(_gamma_gaps(smoothness, random))


def _gamma_gaps(smoothness: float, random: Random) -> Iterator[float]:
    scale = 1.0 / max(smoothness, LEAST_SMOOTHNESS)
    return (random.gammavariate(smoothness, scale) for _ in count())


def conditioned(positions: Iterator[float], arrivals: int) -> Iterator[float]:
    """The first `arrivals` of a process, stretched so that the last is at `arrivals`: due at N / rate exactly.

    What vLLM does with its gaps. Not the process that it was: the sum of the gaps is known beforehand.
    """
    drawn = array("d", islice(positions, arrivals))
    last = drawn[-1] or 1.0
    return (arrivals * (position / last) for position in drawn)


class IndexRamp(msgspec.Struct, frozen=True, kw_only=True):
    """The rates, per second, at the first and at the last of some arrivals; both above 0."""

    start: float
    end: float
    course: Course

    def rate(self, progress: float) -> float:
        """The rate after this share of the arrivals."""
        if self.course == "exponential":
            return self.start * math.pow(self.end / self.start, progress)
        return self.start + (self.end - self.start) * progress


def by_index(ramp: IndexRamp, arrivals: int, smoothness: float, random: Random) -> Iterator[float]:
    """The ramp of vLLM, in seconds: the rate changes with the number of the arrival, not with time.

    Arrival i of N follows the one before (the first: 0) by a gamma gap of shape s and scale 1 / (s rate), with the rate
    start + (end - start) i / (N - 1), or start (end / start)^(i / (N - 1)).
    """
    gaps = _gamma_gaps(smoothness, random)
    last = max(arrivals - 1, 1)
    return accumulate(next(gaps) / ramp.rate(index / last) for index in range(arrivals))


def rescaled(curve: Curve, positions: Iterable[float]) -> Iterator[int]:
    """The due times, ns, at which the rate has come to each of the positions; ends where it never does."""
    return in_ns(moments(curve, positions))


def in_ns(moments_s: Iterable[float]) -> Iterator[int]:
    """Whole nanoseconds, `LATEST_NS` at most."""
    return (round(min(at_s * SECOND_NS, LATEST_NS)) for at_s in moments_s)
