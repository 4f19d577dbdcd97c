"""Loads that runs record: the keys that ask for each, and the law that its arrivals obey; written without the planner.

A law is an area (how many arrivals the rate comes to by a moment) and a distribution of the gaps at unit rate, so that
one test fits every process: the gaps between the areas at the times of the requests.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise
from statistics import median
from typing import Any, NamedTuple

import polars as pl
import tomli_w
from tests.plan.ks import exponential, gamma, p_value

from loadstone.config.options import by_path
from loadstone.plan.store import read_requests, read_rows


class Shape(NamedTuple):
    """One shape of load whose rate goes by time. `gaps` None: each is 1. `cv` is that of the gaps."""

    keys: dict[str, Any]
    area: Callable[[float], float]
    gaps: Callable[[float], float] | None = None
    cv: float = 0.0


def level(rate):
    return lambda t: rate * t


def line(start, end, span_s):
    """The area under a line; beyond it the rate stays."""
    full = (start + end) / 2 * span_s
    return lambda t: (
        start * t + (end - start) * t * t / span_s / 2 if t < span_s else full + end * (t - span_s)
    )


def exponential_course(start, end, span_s):
    return lambda t: start * span_s / math.log(end / start) * ((end / start) ** (t / span_s) - 1)


def zigzag(t):
    """Through 0 s:100, 0.4 s:400, 0.8 s:100, 1.2 s:400."""
    whole, rest = divmod(t, 0.8)
    return whole * 200 + (line(100, 400, 0.4)(rest) if rest < 0.4 else 100 + line(400, 100, 0.4)(rest - 0.4))


POISSON = exponential()
LINE = {"request_rate_ramp_s": 1.0}
CURVE = {**LINE, "request_rate_ramp_strategy": "exponential"}
SHAPES = {
    "constant": Shape({"request_rate": 250, "arrival_pattern": "constant"}, level(250)),
    "poisson": Shape({"request_rate": 250}, level(250), POISSON, 1),
    "gamma-0.5": Shape({"request_rate": 250, "arrival_smoothness": 0.5}, level(250), gamma(0.5), 2**0.5),
    "gamma-4": Shape({"request_rate": 250, "arrival_smoothness": 4.0}, level(250), gamma(4), 0.5),
    "conditioned": Shape({"request_rate": 250, "conditioned": True}, level(250), POISSON),
    "up": Shape(
        {**LINE, "request_rate": 390, "request_rate_ramp_start": 20}, line(20, 390, 1), POISSON, 1
    ),
    "down": Shape(
        {**LINE, "request_rate": 20, "request_rate_ramp_start": 390}, line(390, 20, 1), POISSON, 1
    ),
    "up-even": Shape(
        {**LINE, "request_rate": 390, "request_rate_ramp_start": 20, "arrival_pattern": "constant"},
        line(20, 390, 1),
    ),
    "grow": Shape(
        {**CURVE, "request_rate": 500, "request_rate_ramp_start": 60}, exponential_course(60, 500, 1), POISSON, 1
    ),
    "decay": Shape(
        {**CURVE, "request_rate": 60, "request_rate_ramp_start": 500}, exponential_course(500, 60, 1), POISSON, 1
    ),
    "series": Shape(
        {"request_rate_series": [[0, 100], [0.4, 400], [0.8, 100], [1.2, 400]]}, zigzag, POISSON, 1
    ),
}  # fmt: skip
"""All of them come to 160 requests within about a second."""


def flags(keys):
    """The same on the command line."""
    words = []
    for key, value in keys.items():
        flag = by_path()[f"load.{key}"].flags[0]
        if isinstance(value, list):
            value = ",".join(f"{at:g}:{rate:g}" for at, rate in value)
        words.append(flag if value is True else f"{flag} {value}")
    return " ".join(words)


def phases_file(path, *phases):
    """A config file that lists phases."""
    path.write_text(tomli_w.dumps({"load": {"phases": list(phases)}}))
    return path


class Recorded(NamedTuple):
    """One phase of a run, as it was planned and as it was recorded."""

    run: Any
    name: str

    @property
    def log(self):
        return next(log for log in self.run.log.phases if log.name == self.name)

    @property
    def plan(self):
        """The rows that count."""
        first = self.log.first_row
        return list(read_rows(self.run.path / "plan", first, first + self.log.planned))

    @property
    def asked(self):
        """The same with their bodies, but for where these lie and how the rows are numbered in the run."""
        first = self.log.first_row
        found = read_requests(self.run.path / "plan", first, first + self.log.planned)
        return [(row._replace(request=row.request - first, body_at=0, phase=0), body) for row, body in found]

    @property
    def table(self):
        return self.run.table.filter(pl.col("phase") == self.name)

    @property
    def facts(self):
        """What the report tells of the phase."""
        return next(phase for phase in self.run.report.phases if phase.name == self.name)

    @property
    def arrivals(self):
        """What the report tells of its arrivals."""
        return next(one for one in self.run.report.load.arrivals if one.phase == self.name)

    @property
    def due_s(self):
        return [row.due_ns / 1e9 for row in self.plan]

    @property
    def sent_s(self):
        """When requests were sent, from the start of the phase, in that order."""
        return sorted((at - self.log.start_ns) / 1e9 for at in self.table["sent_ns"].drop_nulls())

    @property
    def lag_s(self):
        """How late each was sent, in the order of the plan."""
        return ((self.table["sent_ns"] - self.table["due_ns"]) / 1e9).to_list()

    def holds_the_plan(self):
        """Every planned request is there once, due when the plan says, and not sent before."""
        rows, table = self.plan, self.table
        assert table["request"].to_list() == [row.request for row in rows]
        assert (table["due_ns"] - self.log.start_ns).to_list() == [row.due_ns for row in rows]
        assert min(self.lag_s) >= 0

    def drift(self):
        """By which share of the time the sending fell behind: how much later the last quarter was sent than the first.

        Of medians, for one late request says nothing of the rate.
        """
        lag_s, due_s = self.lag_s, self.due_s
        quarter = len(lag_s) // 4
        between_s = median(due_s[-quarter:]) - median(due_s[:quarter])
        return abs(median(lag_s[-quarter:]) - median(lag_s[:quarter])) / between_s

    def blur_s(self):
        """By how much requests were late in different ways: nine in ten gaps were sent as planned but for that."""
        lag_s = sorted(self.lag_s)
        return lag_s[len(lag_s) * 95 // 100] - lag_s[0]


def fit(shape, moments_s, blur=0.0):
    """How likely a process of this shape has gaps like these, each known within `blur` gaps; of even ones 1 or 0."""
    areas = [shape.area(at) for at in moments_s]
    gaps = [after - before for before, after in pairwise(areas)]
    if shape.gaps is None:
        return float(all(abs(gap - 1) < 1e-4 for gap in gaps))
    return p_value(gaps, shape.gaps, blur)


def peak(table, came="sent_ns", went="done_ns"):
    """The most requests that were between two moments at once; one that ends makes room for one that begins."""
    return max(levels(table, came, went).values())


def levels(table, came="sent_ns", went="done_ns"):
    """How many requests were between two moments, from every moment at which that changed."""
    there = table.select(came, went).drop_nulls()
    changes = sorted([*((at, 1) for at in there[came]), *((at, -1) for at in there[went])])
    found, level_now = {}, 0
    for at, change in changes:
        level_now += change
        found[at] = level_now
    return found
