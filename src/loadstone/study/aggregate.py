"""What several runs say together: every statistic of every metric over the runs, with Student's interval. Pure.

The unit is the run. Its interval holds what differs from run to run, which no single run can see; a run's own interval
holds what differs from request to request. Where runs scatter by far more than their own intervals let expect
(Cochran's Q against its chi-square), something changes between runs, and that is said.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import NormalDist, fmean, stdev
from typing import Literal

import msgspec

from loadstone.estimate.student import normal, t
from loadstone.metrics import all_metrics, of_one
from loadstone.report import MetricResult
from loadstone.slo import ADJUSTED

SCHEMA_VERSION = "1.0"
STATS = ("mean", "min", "max", "std", "p1", "p5", "p10", "p25", "p50", "p75", "p90", "p95", "p99", "p99_9")
Metrics = Mapping[str, MetricResult]
"""Those of one run."""


class _Part(msgspec.Struct, frozen=True, kw_only=True):
    """A branch of `study.json`."""


class RunLine(_Part, frozen=True, kw_only=True):
    """One run of a study, in the order in which they were done."""

    name: str
    """Its folder within that of the study."""
    side: str
    seed: int
    exit: int
    verdict: str | None
    """Of its certificate; null where there is no report."""
    fault: str | None = None
    """Why there is no report, or none that counts; null: it counts."""


class Spread(_Part, frozen=True, kw_only=True):
    """One statistic over runs, in the metric's unit. `low` to `high` holds the mean over all such runs with 95 %;
    of what is never negative `low` is not either.

    Where it is infinite in some of the runs, since requests failed that count as endless, so is the mean, and all numbers are null.
    """

    runs: int
    """Runs that have it, infinite or not."""
    infinite: int = 0
    """Runs in which it is infinite."""
    mean: float | None
    min: float | None
    max: float | None
    std: float | None
    """Of the sample (n - 1); null with one run, as are the interval and the two below."""
    cv: float | None
    """std / mean."""
    low: float | None
    high: float | None
    values: tuple[float | None, ...]
    """Run by run; null where a run has none, or an infinite one."""
    between: bool | None = None
    """Whether runs differ by more than their own intervals let expect; null where they have none."""


class MetricSpread(_Part, frozen=True, kw_only=True):
    """One metric over runs."""

    unit: str
    better: Literal["lower", "higher", "neither"]
    stats: dict[str, Spread]


def spreads(runs: Sequence[Metrics]) -> dict[str, MetricSpread]:
    """Every metric over these runs; one that no run has is left out."""
    found: dict[str, MetricSpread] = {}
    for name in dict.fromkeys(name for metrics in runs for name in metrics):
        results = [of_run(metrics, name) for metrics in runs]
        told = {stat: one for stat in STATS if (one := spread(results, stat)) is not None}
        first = next((result for result in results if result is not None), None)
        if told and first is not None:
            found[name] = MetricSpread(unit=first.unit, better=first.better, stats=told)
    return found


def of_run(metrics: Metrics, name: str) -> MetricResult | None:
    """A metric of one run; of a latency adjusted for failure, where nothing failed, the plain one: that is what it then is."""
    found = metrics.get(name)
    if not name.startswith(ADJUSTED) or found is None or found.count:
        return found
    plain = all_metrics().get(name.removeprefix(ADJUSTED))
    return found if plain is None else metrics.get((of_one(plain) or plain).name, found)


def spread(results: Sequence[MetricResult | None], stat: str) -> Spread | None:
    """One statistic over the runs; None where no run has it."""
    values = [None if result is None else _value(result, stat) for result in results]
    found = over(values)
    if found is None or found.std is None:
        return found
    return msgspec.structs.replace(found, between=_between(results, stat))


def over(values: Sequence[float | None]) -> Spread | None:
    """The same of one value a run, which may be infinite; None where no run has one."""
    known = [value for value in values if value is not None]
    endless = sum(map(math.isinf, known))
    told = tuple(None if value is None or math.isinf(value) else value for value in values)
    if not known:
        return None
    if endless:
        nothing = dict.fromkeys(("mean", "min", "max", "std", "cv", "low", "high"))
        return Spread(runs=len(known), infinite=endless, values=told, **nothing)
    mean, std = fmean(known), stdev(known) if len(known) > 1 else None
    half = None if std is None else t(len(known) - 1) * std / math.sqrt(len(known))
    least = 0.0 if min(known) >= 0 else -math.inf
    return Spread(
        runs=len(known),
        mean=mean,
        min=min(known),
        max=max(known),
        std=std,
        cv=None if std is None or not mean else std / abs(mean),
        low=None if half is None else max(mean - half, least),
        high=None if half is None else mean + half,
        values=told,
    )


def _between(results: Sequence[MetricResult | None], stat: str) -> bool | None:
    """Whether Q, the sum of (x - weighted mean)^2 / variance, is beyond the 99 % point of chi-square with n - 1 degrees."""
    there = [result for result in results if result is not None and _value(result, stat) is not None]
    known = [(getattr(result, stat), error) for result in there if (error := _error(result, stat))]
    if len(known) < 2 or len(known) < len(there):
        return None
    weights = [1 / error**2 for _, error in known]
    mean = sum(weight * value for weight, (value, _) in zip(weights, known, strict=True)) / sum(weights)
    q = sum(((value - mean) / error) ** 2 for value, error in known)
    return bool(q > chi_square_99(len(known) - 1))


def _value(result: MetricResult, stat: str) -> float | None:
    value: float | None = math.inf if stat in result.infinite else getattr(result, stat)
    return value


def _error(result: MetricResult, stat: str) -> float | None:
    """The standard error that a run knows of itself: of a mean std / sqrt(independent samples), else by the width of its interval."""
    interval = result.intervals.get(stat)
    if interval is None or interval.low is None or interval.high is None:
        return None
    if stat == "mean" and result.std is not None and interval.effective:
        return result.std / math.sqrt(interval.effective)
    return (interval.high - interval.low) / (2 * normal())


def chi_square_99(freedom: int) -> float:
    """The 99 % point of chi-square, by the cube-root approximation of Wilson and Hilferty (1931): within 1 % from 2 on."""
    z, share = NormalDist().inv_cdf(0.99), 2 / (9 * freedom)
    return freedom * (1 - share + z * math.sqrt(share)) ** 3


def percent(one: Spread) -> float | None:
    """Half the width of its interval in percent of the mean; None without one."""
    if one.high is None or not one.mean:
        return None
    return 100 * (one.high - one.mean) / abs(one.mean)
