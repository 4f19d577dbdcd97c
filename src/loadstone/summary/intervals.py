"""The intervals of one metric: how far its mean, its percentiles or its value can be trusted.

Samples that are one value a request come in the order of sending, a pooled distribution (gaps between tokens) as
histograms of equal parts of the run, a rate as what each brought and the time it took up, a share as its hits and misses.
Levels over time (concurrency), counts and extremes have none; nor have the percentiles with the requests cut off,
which rest on an assumption that no interval would hold. What each rests on: docs/statistics.md.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from loadstone.estimate import LEVEL, Estimate, batches, order, rates
from loadstone.estimate.share import share
from loadstone.histogram import Histogram
from loadstone.metrics import Number, Samples
from loadstone.report import Interval
from loadstone.stats import PERCENTILES, Floats

STATS = ("p50", "p90", "p95", "p99", "p99_9")
"""The percentiles that have an interval."""


def of_samples(found: Samples) -> dict[str, Interval]:
    """By statistic, for a distribution. To be asked before its values are sorted."""
    if found.batches:
        return _told(_pooled(found.batches))
    if not found.in_order or isinstance(found.values, Histogram) or np.iscomplexobj(found.values):
        return {}
    values = np.asarray(found.values, np.float64)
    if not np.isfinite(values).all():  # requests that failed and count as endless
        return {}
    percentiles = order.quantiles(values, [PERCENTILES[stat] for stat in STATS])
    return _told({"mean": _mean(values), **dict(zip(STATS, percentiles, strict=True))})


def _mean(values: Floats) -> Estimate:
    """That of the mean; of what is never negative the mean is not either."""
    found = batches.mean(values)
    return found if found.low is None or values.min() < 0 else found._replace(low=max(found.low, 0.0))


def of_number(found: Number) -> dict[str, Interval]:
    """That of a rate or a share; empty where neither its pace nor its hits are known."""
    hits = None if found.hits is None else share(found.hits, found.values)
    if found.rate is not None:
        return _told({"mean": _no_better(rates.rate(*found.rate), found, hits)})
    if hits is not None:
        return _told({"mean": hits._replace(low=_percent(hits.low), high=_percent(hits.high))})
    return {}


def _no_better(rate: Estimate, found: Number, hits: Estimate | None) -> Estimate:
    """The interval of a rate of hits, which is known no better, relative to its value, than their share.

    Hits and misses tell of crowds that a rate has no trace of, where all that came was a hit. So the wider of the two.
    """
    if hits is None or hits.low is None or hits.high is None or rate.low is None or rate.high is None:
        return rate
    share_of_hits = 0.0 if found.hits is None else float(found.hits.mean())
    scale = found.value / share_of_hits if share_of_hits else 0.0
    if rate.high - rate.low >= scale * (hits.high - hits.low):
        return rate
    return rate._replace(low=scale * hits.low, high=scale * hits.high)


def _pooled(parts: tuple[Histogram, ...]) -> Mapping[str, Estimate]:
    """Of the samples of all parts together."""
    weights = np.array([part.weight for part in parts])
    sums = np.array([part.mean * part.weight if part.weight else 0.0 for part in parts])
    mean = batches.ratio(sums, weights)._replace(effective=None)
    return {"mean": mean, **{stat: order.pooled(parts, PERCENTILES[stat]) for stat in STATS}}


def _told(found: Mapping[str, Estimate]) -> dict[str, Interval]:
    return {stat: Interval(level=LEVEL, **one._asdict()) for stat, one in found.items()}


def _percent(share: float | None) -> float | None:
    return None if share is None else 100 * share
