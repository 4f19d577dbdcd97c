"""One metric's numbers, in the form of the report: every one finite, or null."""

from __future__ import annotations

import math

import numpy as np
from msgspec.structs import replace

from loadstone.metrics import Metric, Missing, Number, Samples, Tables
from loadstone.report import MetricResult
from loadstone.stats import Survival, summarise, survival


def measure(metric: Metric, tables: Tables) -> MetricResult:
    """What a metric gives for these tables."""
    found = metric.result(tables)
    empty = MetricResult(unit=metric.unit, better=metric.better)
    if isinstance(found, Missing):
        return replace(empty, reason=found.reason)
    if isinstance(found, Number):
        return _number(empty, found)
    return _distribution(empty, found)


def _number(empty: MetricResult, found: Number) -> MetricResult:
    if not math.isfinite(found.value):
        return replace(empty, reason=f"the value is {found.value}, which is no number.")
    return replace(empty, count=1, mean=found.value, note=found.note)


def _distribution(empty: MetricResult, found: Samples) -> MetricResult:
    if not len(found.values):
        return replace(empty, reason="there is no sample.")
    curve = _curve(found)
    summary = summarise(found.values)
    if not np.isfinite([summary.min, summary.max]).all():
        return replace(empty, reason="some samples are not finite.")
    return replace(
        empty,
        count=summary.count if found.counted is None else found.counted,
        mean=summary.mean,
        min=summary.min,
        max=summary.max,
        std=summary.std,
        thin=summary.thin,
        note=found.note,
        censored=0 if found.censored is None else len(found.censored),
        with_censored=curve and curve.percentiles,
        with_censored_least=curve and curve.least,
        **summary.percentiles,
    )


def _curve(found: Samples) -> Survival | None:
    """The percentiles with what we broke off; None when that touched no sample."""
    return None if found.ended is None or found.censored is None else survival(found.ended, found.censored)
