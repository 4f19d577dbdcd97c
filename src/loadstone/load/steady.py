"""Whether the numbers of a load are good enough to stop: the 95 % interval of a mean, from its course so far.

Pure: it is told the board's counters a few times a second. The mean of a metric over a stretch of time is one batch;
consecutive batches tell how far the whole mean can be trusted, also when requests depend on each other (batch means;
Law and Kelton). Batches are joined in pairs as the load lasts, so that there are always between `BATCHES` and twice
as many, and they get as long as the server's memory asks for. What correlation is left between neighbours widens the
interval by sqrt((1 + r) / (1 - r)), as for a process of first order.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from statistics import fmean, variance
from typing import NamedTuple

from loadstone.board import Field, Live
from loadstone.estimate.student import t
from loadstone.figures import brief

BATCHES = 20
LEAST_REQUESTS = 100
"""Fewer answers say too little of themselves to stop for."""
LEFT_OUT = 0.25
"""Of the course, at its beginning: the way to the steady state."""
OF_WHAT = "the last three quarters of the phase"
"""What is left: the mean of a report is that of the whole, and differs."""
MOST_CORRELATED = 0.9
"""Batches that hang together more than this are too short to tell anything."""


class _Kind(NamedTuple):
    """A mean as a ratio of two counters; no `of` for one per second."""

    name: Field
    of: Field | None
    scale: float
    unit: str


METRICS: Mapping[str, _Kind] = {
    "request_latency": _Kind(Field.LATENCY_US, Field.OK, 1e-3, "ms"),
    "time_to_first_token": _Kind(Field.TTFT_US, Field.TTFTS, 1e-3, "ms"),
    "inter_token_latency": _Kind(Field.GAPS_US, Field.GAPS, 1e-3, "ms"),
    "time_per_output_token": _Kind(Field.TPOT_US, Field.TPOTS, 1e-3, "ms"),
    "request_throughput": _Kind(Field.OK, None, 1.0, "requests/s"),
    "output_token_throughput": _Kind(Field.TOKENS, None, 1.0, "tokens/s"),
}
"""What can stop a load. Latencies are those from send, over successes, as in the metrics of these names."""


class Interval(NamedTuple):
    """A mean and the half width of its 95 % interval, in the metric's unit."""

    mean: float
    half: float

    @property
    def percent(self) -> float:
        """The half width in percent of the mean."""
        return 100 * self.half / self.mean if self.mean else math.inf


class _Mark(NamedTuple):
    """The counters at one moment."""

    at_s: float
    counts: Sequence[int]


class Steady:
    """The course of one measured phase. `limits`: the width wanted, in percent of the mean, by metric."""

    def __init__(self, limits: Mapping[str, float]) -> None:
        self._limits = limits
        self._marks: list[_Mark] = []
        self._step_s = 0.0

    def look(self, live: Live, elapsed_s: float) -> str | None:
        """Why the load may stop, in words; None: it may not yet. `elapsed_s` counts from the start of the phase."""
        if not self._limits or not self._note(_Mark(elapsed_s, live.fields)):
            return None
        found = {name: self.interval(name) for name in self._limits}
        known = {name: interval for name, interval in found.items() if interval is not None}
        if len(known) < len(found) or any(one.percent > self._limits[name] for name, one in known.items()):
            return None
        means = " and ".join(f"{name} is {_told(name, one)}" for name, one in known.items())
        return f"{means}, over {OF_WHAT}"

    def unmet(self) -> Iterator[str]:
        """Of a load that has come to its planned end: how near each metric came that was not known well enough."""
        for name, percent in self._limits.items():
            interval = self.interval(name) if len(self._judged()) > BATCHES else None
            if interval is None:
                yield f"--stop-when {name}:{brief(percent)} was not met: too little came to know its mean well."
            elif interval.percent > percent:
                yield (
                    f"--stop-when {name}:{brief(percent)} was not met: at the end it was known within"
                    f" {brief(interval.percent)} %, over {OF_WHAT}."
                )

    def _note(self, mark: _Mark) -> bool:
        """Keeps the counters, if a batch has gone by; whether there are enough batches then."""
        if self._marks and mark.at_s < self._marks[-1].at_s:  # another phase: what was before does not count
            self._marks.clear()
            self._step_s = 0.0
        if self._marks and mark.at_s - self._marks[-1].at_s < self._step_s:
            return False
        self._marks.append(mark)
        if len(self._marks) > 2 * BATCHES / (1 - LEFT_OUT):
            self._marks = self._marks[::2]
            self._step_s = self._marks[1].at_s - self._marks[0].at_s
        return len(self._judged()) > BATCHES

    def _judged(self) -> list[_Mark]:
        """The marks after the way to the steady state."""
        return self._marks[math.ceil(LEFT_OUT * len(self._marks)) :]

    def interval(self, name: str) -> Interval | None:
        """The interval of a metric's mean; None while too little is known."""
        marks = self._judged()
        first, last = marks[0].counts, marks[-1].counts
        if last[Field.OK] - first[Field.OK] < LEAST_REQUESTS:
            return None
        batches = [value for pair in pairwise(marks) if (value := _mean(name, *pair)) is not None]
        mean = _mean(name, marks[0], marks[-1])
        if mean is None or len(batches) < BATCHES:
            return None
        spread, together = variance(batches), _correlation(batches)
        if together > MOST_CORRELATED:
            return None
        widened = math.sqrt((1 + together) / (1 - together)) if together > 0 else 1.0
        half = t(len(batches) - 1) * math.sqrt(spread / len(batches)) * widened
        return Interval(mean, half)


def _mean(name: str, first: _Mark, last: _Mark) -> float | None:
    """The mean of a metric between two marks; None when nothing of it came."""
    kind = METRICS[name]
    gained = last.counts[kind.name] - first.counts[kind.name]
    over = last.at_s - first.at_s if kind.of is None else last.counts[kind.of] - first.counts[kind.of]
    return kind.scale * gained / over if over > 0 else None


def _correlation(values: Sequence[float]) -> float:
    """Between neighbours: sum of (a - m)(b - m) over the sum of (a - m)^2; 0 where nothing varies."""
    mean = fmean(values)
    square = sum((value - mean) ** 2 for value in values)
    return sum((a - mean) * (b - mean) for a, b in pairwise(values)) / square if square else 0.0


def _told(name: str, one: Interval) -> str:
    return f"{brief(one.mean)} {METRICS[name].unit} within {brief(one.percent)} %"
