"""Arrival processes: endless, increasing due times in nanoseconds from the start of a phase.

Pure: the randomness is handed in. A process that is not conditioned on its length: the first
gap is drawn like every other, and the n-th arrival of a Poisson process is not forced to n / rate.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from sys import float_info

from loadstone.clock import SECOND_NS

LATEST_NS = 1 << 60
"""36 years; what would arrive later does so then, and every sum of times stays within 64 bits."""


def constant(rate: float) -> Iterator[int]:
    """Arrival i at i / rate, each computed from its index so that no error accumulates."""
    index = 0
    while True:
        yield round(min(index * SECOND_NS / rate, LATEST_NS))
        index += 1


def poisson(rate: float, random: Random) -> Iterator[int]:
    """Exponential gaps of mean 1 / rate."""
    at_s = 0.0
    while True:
        at_s += random.expovariate(rate)
        yield round(min(at_s * SECOND_NS, LATEST_NS))


def gamma(rate: float, smoothness: float, random: Random) -> Iterator[int]:
    """Gamma gaps of shape s = `smoothness` and scale 1 / (rate * s): mean 1 / rate, CV 1 / sqrt(s).

    The same meaning as AIPerf's `--arrival-smoothness` and vLLM's `--burstiness`; s = 1 is Poisson.
    """
    at_s = 0.0
    scale = 1.0 / max(rate * smoothness, float_info.min)
    while True:
        at_s += random.gammavariate(smoothness, scale)
        yield round(min(at_s * SECOND_NS, LATEST_NS))
