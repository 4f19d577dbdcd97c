"""One metric's numbers, in the form of the report: every one finite, or null and named where it is infinite."""

from __future__ import annotations

import math

import numpy as np
from msgspec.structs import replace

from loadstone.histogram import Histogram
from loadstone.metrics import Metric, Missing, Number, Samples, Tables
from loadstone.report import MetricResult
from loadstone.stats import PERCENTILES, Floats, Summary, Weighted, summarise, survival, thin
from loadstone.summary.endless import endless, with_infinity
from loadstone.summary.intervals import of_number, of_samples

BINNED = "Percentiles are within 0.1 %."
"""The note of what is told from a histogram."""


def measure(metric: Metric, tables: Tables) -> MetricResult:
    """What a metric gives for these tables."""
    found = metric.result(tables)
    empty = MetricResult(unit=metric.unit, better=metric.better)
    if isinstance(found, Missing):
        return _missing(empty, found)
    if isinstance(found, Number):
        return _number(empty, found)
    return _distribution(empty, found)


def _number(empty: MetricResult, found: Number) -> MetricResult:
    if not math.isfinite(found.value):
        return replace(empty, reason=f"the value is {found.value}, which is no number.")
    return replace(empty, count=1, mean=found.value, note=found.note, intervals=of_number(found))


def _missing(empty: MetricResult, found: Missing) -> MetricResult:
    """No value, but of requests that we cut off what is known; those seen to the metric's end tell what is thin."""
    seen = 0 if found.ended is None else len(found.ended)
    return replace(_with_curve(empty, found, 0), reason=found.reason, thin=thin(seen) if seen else ())


def _distribution(empty: MetricResult, found: Samples) -> MetricResult:
    binned = isinstance(found.values, Histogram)
    samples = found.values.count if isinstance(found.values, Histogram) else len(found.values)
    if not samples:
        return replace(empty, reason="there is no sample.")
    if endless(found.values):
        return replace(with_infinity(empty, found.values), note=found.note)
    empty = _with_curve(empty, found, samples)
    intervals = of_samples(found)
    summary = _summary(found.values)
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
        intervals=intervals,
        note=" ".join(filter(None, (found.note, BINNED))) if binned else found.note,
        **summary.percentiles,
    )


def _summary(samples: Floats | Weighted | Histogram) -> Summary:
    """The summary of samples that may be binned; a weighted sample counts once for `thin`, as in `stats.summarise`."""
    if not isinstance(samples, Histogram):
        return summarise(samples)
    return Summary(
        count=max(round(samples.weight), 1),
        mean=samples.mean,
        min=samples.min,
        max=samples.max,
        std=samples.std,
        percentiles={name: samples.quantile(q) for name, q in PERCENTILES.items()},
        thin=thin(samples.count),
    )


def _with_curve(empty: MetricResult, found: Samples | Missing, samples: int) -> MetricResult:
    """The percentiles with what we cut off beside the plain `samples`; null when that touched none."""
    if found.ended is None or found.censored is None:
        return empty
    curve = survival(found.ended, found.censored)
    return replace(
        empty,
        cut_off=len(found.ended) + len(found.censored) - samples,
        censored=len(found.censored),
        with_censored=curve.percentiles,
        with_censored_least=curve.least,
    )
