"""Verdicts on the objectives of a run: met, missed, or not to be told from so many requests.

A number of a run is one draw of what the server does under this load, so it is its interval that is held against a limit:
PASS when all of it is on the good side, FAIL when all of it is on the bad side, else UNDECIDED. A percentile is decided
without a detour: p99 is below 500 ms exactly when less than 1 % of the requests take longer, so the share of those is
judged (of requests in the order of sending, which depend on each other).

Latencies are over successes here as everywhere, so a failure counts in error_rate, in goodput_attainment and in the adjusted
latencies, and in no other. What was cut off counts by its estimate (`with_censored`): no objective is met that is missed
with them. The least and the greatest value, and counts of things in this run, are facts of it and judged as they were seen.

PASS and FAIL each are wrong in at most about one of forty runs of a server that is exactly at its limit: an interval's ends
are held to 2.5 % each, also of few hits (`estimate.share`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

import msgspec
import numpy as np
from msgspec.structs import replace

from loadstone.config import Config
from loadstone.estimate import LEVEL
from loadstone.estimate.clopper_pearson import trials
from loadstone.estimate.share import METHOD, share
from loadstone.figures import brief
from loadstone.metrics import Tables, all_metrics, of_one, per_request
from loadstone.metrics._objectives import kinds, of_run, settled
from loadstone.plan import schedule
from loadstone.report import Interval, MetricResult, SloVerdict
from loadstone.slo import ADJUSTED, Objective, objectives, split
from loadstone.stats import PERCENTILES, Floats

OF_THIS_RUN = ("min", "max")
COUNTS = ("requests", "tokens")
"""Units of what is counted in a run, and not drawn from it."""
MOST = 10**9
"""Nobody sends so many requests more."""
_Word = Literal["PASS", "FAIL", "UNDECIDED"]


class _Judged(NamedTuple):
    """What was found, and about how many requests more would decide it."""

    verdict: _Word
    finding: str
    more: int | None = None


def verdicts(tables: Tables, metrics: Mapping[str, MetricResult]) -> tuple[SloVerdict, ...]:
    """A verdict for every objective of the run that is not about each request."""
    return tuple(_verdict(one, tables, metrics) for one in of_run(tables.config))


def judged_by(config: dict[str, Any], texts: Sequence[str]) -> dict[str, Any]:
    """A run's configuration with other objectives; with other limits for each request where these have some.

    Raises `UsageError` for an objective that is none, or that this run can have no value for.
    """
    asked = msgspec.convert(config, Config)
    each = any(one.each for one in objectives(texts, kinds()))
    slo = replace(asked.slo, objectives=tuple(split(texts)), goodput={} if each else asked.slo.goodput)
    made = settled(replace(asked, slo=slo), schedule.phases(asked.load, asked.input))
    return {**config, "slo": msgspec.to_builtins(made.slo)}


def _verdict(one: Objective, tables: Tables, metrics: Mapping[str, MetricResult]) -> SloVerdict:
    result = _result(one, tables, metrics)
    stat = one.stat or "mean"
    found = _judged(one, result, tables)
    why = _stopped(one, tables) if found.verdict != "FAIL" else ""
    made = SloVerdict(
        objective=str(one),
        metric=one.metric,
        stat=one.stat or None,
        limit=one.limit,
        better=one.better,
        unit=one.unit,
        value=getattr(result, stat),
        infinite=stat in result.infinite,
        interval=result.intervals.get(stat),
        verdict=found.verdict,
        finding=found.finding + why,
        more_requests=found.more,
    )
    return _with_cut_off(one, result, made)


def _result(one: Objective, tables: Tables, metrics: Mapping[str, MetricResult]) -> MetricResult:
    """The metric's numbers; of one adjusted for failure, where nothing failed, those of the plain one."""
    found = metrics[one.metric]
    if one.metric.startswith(ADJUSTED) and not tables.failed.any():
        plain = all_metrics()[one.metric.removeprefix(ADJUSTED)]
        return metrics[(of_one(plain) or plain).name]
    return found


def _judged(one: Objective, result: MetricResult, tables: Tables) -> _Judged:
    """By the share of requests beyond the limit, where there is one, else by the interval."""
    stat = one.stat or "mean"
    value, interval = getattr(result, stat), result.intervals.get(stat)
    if result.reason is not None:
        return _Judged("UNDECIDED", f"There is no value: {result.reason}")
    if one.stat in PERCENTILES and (values := _values(one, tables)) is not None:
        return _by_share(one, values, _lead(tables))
    if stat in result.infinite:
        return _Judged("FAIL", "It is infinite, since requests failed.")
    if one.stat in OF_THIS_RUN or (interval is None and one.unit in COUNTS and not one.stat):
        word: _Word = "PASS" if one.keeps(value) else "FAIL"
        return _Judged(word, f"It was {brief(value)} {one.unit} in this run, which is all that is judged.")
    metric = all_metrics()[one.metric]
    requests = result.count if of_one(metric) is metric else int(tables.attempted.sum())
    return _by_interval(one, value, interval, requests)


def _by_interval(one: Objective, value: float, interval: Interval | None, requests: int) -> _Judged:
    """Where the interval lies; how far it reaches falls with the square root of the requests."""
    if interval is None or interval.low is None:
        why = interval.reason if interval and interval.reason else "it has no interval."
        return _Judged(
            "UNDECIDED",
            f"Nothing tells how far the true value may be from it: {why}",
            _still_needed(interval, requests),
        )
    low, high = interval.low, interval.high
    if high is None:
        return _open(one, interval, requests)
    span = f"{brief(low)} to {brief(high)} {one.unit} ({_percent(interval.level)} interval)"
    if one.keeps(low) and one.keeps(high):
        return _Judged("PASS", f"It is {span}, all within the limit{_one_by_one(one, value)}.")
    if not (one.keeps(low) or one.keeps(high)):
        return _Judged("FAIL", f"It is {span}, all beyond the limit.")
    if interval.method == METHOD:
        more = _more_of_share(value / 100, low / 100, high / 100, one.limit / 100, requests)
    else:
        reach = value - low if value > one.limit else high - value
        more = _more(requests, (reach / abs(value - one.limit)) ** 2 if value != one.limit else math.inf)
    return _Judged("UNDECIDED", f"It is {span}, and the limit lies within.", more)


def _open(one: Objective, interval: Interval, requests: int) -> _Judged:
    """By the lower end, which is all there is: with that on the one side of the limit nothing above changes it."""
    low = interval.low or 0.0
    span = f"at least {brief(low)} {one.unit} ({_percent(interval.level)} interval, open above)"
    if one.better == "lower" and not one.keeps(low):
        return _Judged("FAIL", f"It is {span}, all beyond the limit.")
    if one.better == "higher" and one.keeps(low):
        return _Judged("PASS", f"It is {span}, all within the limit.")
    why = interval.reason or "nothing tells how far above that it may be."
    return _Judged("UNDECIDED", f"It is {span}; {why}", _still_needed(interval, requests))


def _still_needed(interval: Interval | None, requests: int) -> int | None:
    """How many requests more an interval takes, where that is known."""
    return max(interval.needs - requests, 1) if interval and interval.needs else None


def _one_by_one(one: Objective, value: float) -> str:
    """What a PASS without a single failure rests on: a burst that did not come left no trace of itself."""
    return ", if failures come one by one" if (one.metric, value) == ("error_rate", 0) else ""


def _by_share(one: Objective, values: Floats, lead: int) -> _Judged:
    """A percentile by the share of requests beyond its limit: no more than what the percentile leaves out."""
    q = PERCENTILES[one.stat]
    allowed = 1 - q if one.better == "lower" else q
    hits = values > one.limit if one.better == "lower" else values < one.limit
    seen, found = float(hits.mean()), share(hits, _ended(values, one.limit), lead)
    side = "above" if one.better == "lower" else "below"
    told = f"{_percent(seen)} of {len(hits):,} requests are {side} {brief(one.limit)} {one.unit}"
    if found.low is None or found.high is None:
        more = max(found.needs - len(hits), 1) if found.needs else None
        return _Judged(
            "UNDECIDED",
            f"{told}; nothing tells how far the true share may be from that: {found.reason}",
            more,
        )
    span = f"({_percent(LEVEL)} interval {_percent(found.low)} to {_percent(found.high)}), {_percent(allowed)} may be"
    if found.high <= allowed:
        return _Judged("PASS", f"{told} {span}.")
    if found.low > allowed:
        return _Judged("FAIL", f"{told} {span}.")
    more = _more_of_share(seen, found.low, found.high, allowed, len(hits))
    return _Judged("UNDECIDED", f"{told} {span}.", more)


def _lead(tables: Tables) -> int:
    """How many requests a lone closed loop sends at once in its beginning, which all meet an idle server together."""
    loads = tables.loads
    return 0 if len(loads) != 1 or loads[0].timed else loads[0].slots or 0


def _values(one: Objective, tables: Tables) -> Floats | None:
    """What the metric is for every request that has a value, in the order of sending; None where none has.

    None too for samples that are not one a request, such as the gaps between tokens.
    """
    adjusted = one.metric.startswith(ADJUSTED)
    metric = all_metrics()[one.metric.removeprefix(ADJUSTED)]
    single = of_one(metric)
    if single is None or (single is not metric and not adjusted):
        return None
    values = per_request(single.name, tables)
    if adjusted:
        values = np.where(tables.failed, np.inf, values)
    known = ~np.isnan(values) & (tables.succeeded | (tables.failed & adjusted))
    order = np.argsort(tables.number("sent_ns")[known], kind="stable")
    return values[known][order] if len(order) else None


def _ended(values: Floats, limit: float) -> Floats:
    """The values as a series that has a mean: what took for ever counts as the longest that did not, and as beyond the limit."""
    endless = np.isinf(values)
    if not endless.any():
        return values
    return np.where(endless, max(2 * limit, np.max(values, where=~endless, initial=0.0)), values)


def _with_cut_off(one: Objective, result: MetricResult, made: SloVerdict) -> SloVerdict:
    """No objective is met that is missed once the requests count that were cut off."""
    if made.verdict != "PASS" or not result.with_censored or one.stat not in result.with_censored:
        return made
    value = result.with_censored[one.stat]
    least = result.with_censored_least if value is None else value
    if value is not None and one.keeps(value):
        return made
    at_least = value is None or result.with_censored_at_least
    told = "" if least is None else f" {'at least ' if at_least else ''}{brief(least)} {one.unit}"
    missed = at_least and least is not None and not one.keeps(least)
    return replace(
        made,
        value=value,
        verdict="FAIL" if missed else "UNDECIDED",
        finding=f"The answers that came keep it, but with the {result.cut_off:,} requests that were cut off it is{told or ' not known'}.",
        more_requests=None,
    )


def _stopped(one: Objective, tables: Tables) -> str:
    """That this objective ended the load, where it did. Only what was sent is judged, and by the same rule as ever."""
    objective, _, why = (tables.run.stopped_why or "").partition(": ")
    return f" The load ended since {why}." if tables.run.stopped_by == "slo" and objective == str(one) else ""


def _more_of_share(seen: float, low: float, high: float, allowed: float, requests: int) -> int | None:
    """As many times more as the trials of an interval that ends at `allowed` are those of the one that was found."""
    now, then = trials(seen, high if seen < allowed else low), trials(seen, allowed)
    return None if now is None or then is None else _more(requests, then / now)


def _more(requests: int, times: float) -> int | None:
    """The requests that make so many times as many, to two digits; None for more than anybody sends."""
    more = requests * (times - 1)
    if not more < MOST:
        return None
    whole = max(1, math.ceil(more))
    unit: int = 10 ** max(0, len(str(whole)) - 2)
    return -(-whole // unit) * unit


def _percent(part: float) -> str:
    return f"{100 * part:.3g} %"
