"""Every statistic of two sides: the ratio, its interval, whether a difference is shown."""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import NamedTuple

from msgspec.structs import replace

from loadstone.compare import material, pairs
from loadstone.compare.result import Row
from loadstone.compare.sides import (
    LATENCIES,
    METRICS,
    RATES,
    SHARES,
    STATS,
    UNITS,
    Known,
    Requests,
    Run,
    Side,
    better,
)
from loadstone.compare.words import verdict
from loadstone.errors import UsageError
from loadstone.estimate.ratio import ALPHA, Ratio, Untold, compared, of_intervals, over_runs
from loadstone.estimate.tails import holm

HEADLINES = (
    ("time_to_first_token", "mean"),
    ("request_latency", "mean"),
)
"""The first of them that both sides have is the headline, unless another is asked for. Whether it can be told is not looked at."""
FROM_DUE = "request_latency_from_due"
WAITED = 0.01
"""Latency from the due time has rows of its own where it is longer by this share on either side."""
SUMMARY = "only summaries are known, which do not tell how far requests depend on each other."
UNTIMED = "when each request was sent is not known of both."
RAMP = "a run is ramp and drain for the most part; it takes a longer one."


class Found(NamedTuple):
    """A statistic of both sides before all are looked at together."""

    metric: str
    stat: str
    a: float | None
    b: float | None
    ratio: Ratio | Untold
    pairs: int | None = None
    """Over so many requests alone, which are not all of both sides; `a` and `b` are of all."""


class Material(NamedTuple):
    """The requests that statistics are drawn from."""

    a: Requests
    b: Requests
    paired: bool


class Chosen(NamedTuple):
    """Those of one run each: for latencies the pairs alone, for rates and shares all that each run sent.

    What a request without a partner did, or the time it took, is part of a rate all the same.
    """

    latencies: Material
    rest: Material


def rows(
    first: Side,
    other: Side,
    *,
    paired: bool,
    metrics: Collection[str] = METRICS,
    headline: tuple[str, str] | None = None,
    seed: int = 0,
) -> tuple[Row, ...]:
    """The rows of a comparison, the headline first.

    The headline is one question, asked before anything was seen, and is judged by itself. All other rows are judged together:
    of m of them, where none differs, one is said to in at most 5 % of all comparisons (Holm).
    """
    chosen = _chosen(first, other, paired)
    found = [
        one
        for metric in METRICS
        if metric in metrics
        for stat in (STATS if metric in LATENCIES else ("mean",))
        if (one := _found(metric, stat, first, other, paired, chosen, seed)) is not None
    ]
    found = [one for one in found if one.metric != FROM_DUE or _waited(one, found)]
    main = _headline(found, headline)
    rest = [one for one in found if one is not main and isinstance(one.ratio, Ratio)]
    adjusted = holm([one.ratio.tail for one in rest if isinstance(one.ratio, Ratio)])
    beside = {id(one): tail for one, tail in zip(rest, adjusted, strict=True)}
    alpha = ALPHA / max(len(rest), 1)
    ordered = sorted(found, key=lambda one: one is not main)
    return tuple(
        _row(one, first, other, one is main, beside.get(id(one)), ALPHA if one is main else alpha)
        for one in ordered
    )


def unlike(first: Run, other: Run) -> tuple[str, ...]:
    """Metrics that only one of the two has though the other has its namesake."""
    mine, theirs = ({metric for metric, _ in run.numbers} for run in (first, other))
    pairs = (
        ("inter_token_latency", "inter_chunk_latency"),
        ("time_per_output_token", "time_per_output_token_with_prefill"),
    )
    return tuple(
        name
        for one, two in pairs
        for name in (one, two)
        if (one in mine and two in theirs and not {one, two} <= mine & theirs)
        or (two in mine and one in theirs and not {one, two} <= mine & theirs)
    )


def _waited(one: Found, found: list[Found]) -> bool:
    """Whether latency from the due time tells more than latency from the send: requests waited at the client."""
    plain = next(
        (other for other in found if (other.metric, other.stat) == ("request_latency", one.stat)), None
    )
    if plain is None or one.a is None or one.b is None or plain.a is None or plain.b is None:
        return True
    return max(one.a / plain.a, one.b / plain.b) > 1 + WAITED if plain.a > 0 and plain.b > 0 else True


def _headline(found: list[Found], asked: tuple[str, str] | None) -> Found | None:
    wanted = (asked,) if asked else HEADLINES
    by = {(one.metric, one.stat): one for one in found}
    if asked is not None and asked not in by:
        raise UsageError(f"--headline {'.'.join(asked)}: not both sides have it; choose another one.")
    return next((by[name] for name in wanted if name in by), None)


def _chosen(first: Side, other: Side, paired: bool) -> Chosen | None:
    """None where single requests are not known of both, or where a side is several runs."""
    a, b = first.run.requests, other.run.requests
    if a is None or b is None or len(first.runs) > 1 or len(other.runs) > 1:
        return None
    apart = Material(a, b, False)
    if not paired:
        return Chosen(apart, apart)
    left, right = pairs.paired(a, b)
    whole = len(left.sent_s) == len(a.sent_s) == len(b.sent_s)
    together = Material(left, right, True)
    return Chosen(together, together if whole else apart)


def _found(
    metric: str, stat: str, first: Side, other: Side, paired: bool, chosen: Chosen | None, seed: int
) -> Found | None:
    a, b = _number(first, metric, stat), _number(other, metric, stat)
    if a is None or b is None:
        return None
    difference = metric in SHARES
    if len(first.runs) > 1 or len(other.runs) > 1:
        values = [
            [one.value for run in side.runs if (one := run.numbers.get((metric, stat)))]
            for side in (first, other)
        ]
        return Found(metric, stat, a, b, over_runs(*values, paired=paired, difference=difference))
    return _of_one_run(metric, stat, first.run, other.run, chosen, seed)


def _number(side: Side, metric: str, stat: str) -> float | None:
    values = [one.value for run in side.runs if (one := run.numbers.get((metric, stat)))]
    return sum(values) / len(values) if values else None


def _of_one_run(metric: str, stat: str, a: Run, b: Run, chosen: Chosen | None, seed: int) -> Found:
    mine, theirs, difference = a.numbers[metric, stat], b.numbers[metric, stat], metric in SHARES
    change = _change(mine, theirs, difference)
    untold = Found(metric, stat, mine.value, theirs.value, Untold(SUMMARY, change))
    if chosen is None or a.requests is None or b.requests is None:
        return untold._replace(ratio=_by_intervals(mine, theirs, difference) or untold.ratio)
    drawn = chosen.latencies if metric in LATENCIES else chosen.rest
    if metric in LATENCIES:
        needed = [n for one in drawn[:2] if (n := material.too_few(metric, stat, one))]
        if needed:
            reason = f"too few samples: {stat} takes {max(needed):,} or more of each side."
            return untold._replace(ratio=Untold(reason, change))
    if metric in RATES and any(map(material.ramp, drawn[:2])):
        return untold._replace(ratio=Untold(RAMP, change))
    ratio = _ratio(metric, stat, drawn, seed)
    if ratio is None:
        return untold._replace(ratio=Untold(UNTIMED if metric in RATES else SUMMARY, change))
    over = _pairs(metric, drawn, a.requests, b.requests)
    if over is None and change is not None and metric not in a.requests.pooled:
        # The change is that of the numbers beside it; gaps may be read more finely here than in a report.
        ratio = ratio._replace(value=change)
    return untold._replace(ratio=ratio, pairs=over)


def _ratio(metric: str, stat: str, drawn: Material, seed: int) -> Ratio | Untold | None:
    # By how much the drains of a pair differ is told once, of B: from itself A does not differ.
    partner = drawn.a if drawn.paired else None
    one, two = (material.statistic(metric, stat, side, partner=partner) for side in drawn[:2])
    if one is None or two is None:
        return None
    difference = metric in SHARES
    least = math.hypot(*(material.least_error(metric, side) for side in drawn[:2])) if difference else 0.0
    return compared(one, two, paired=drawn.paired, difference=difference, least_error=least, seed=seed)


def _pairs(metric: str, drawn: Material, a: Requests, b: Requests) -> int | None:
    """How many requests a latency is compared over, where these are not all that have it; None: they are."""
    if metric not in LATENCIES or not drawn.paired:
        return None
    over = material.count(metric, drawn.a)
    return over if over < max(material.count(metric, a), material.count(metric, b)) else None


def _by_intervals(mine: Known, theirs: Known, difference: bool) -> Ratio | None:
    known = [
        (one.value, one.low, one.high)
        for one in (mine, theirs)
        if one.low is not None and one.high is not None and (difference or min(one.low, one.value) > 0)
    ]
    return of_intervals(known[0], known[1], difference=difference) if len(known) == 2 else None


def _change(mine: Known, theirs: Known, difference: bool) -> float | None:
    if difference:
        return theirs.value - mine.value
    return theirs.value / mine.value if mine.value > 0 else None


def _row(one: Found, first: Side, other: Side, main: bool, adjusted: float | None, alpha: float) -> Row:
    base = Row(
        metric=one.metric,
        stat=one.stat if one.metric in LATENCIES else None,
        unit=UNITS.get(one.metric, "ms"),
        better="higher" if better(one.metric) == "higher" else "lower",
        headline=main,
        a=one.a,
        b=one.b,
        difference=one.metric in SHARES,
        pairs=one.pairs,
        caveat=_caveat(one.metric, first.run, other.run),
    )
    return verdict(_filled(base, one.ratio, main, adjusted, alpha), other.name)


def _filled(base: Row, ratio: Ratio | Untold, main: bool, adjusted: float | None, alpha: float) -> Row:
    if isinstance(ratio, Untold):
        return replace(base, change=ratio.value, reason=ratio.reason)
    low, high = ratio.interval()
    counts = ratio.tail if main or adjusted is None else adjusted
    return replace(
        base,
        change=ratio.value,
        low=low,
        high=high,
        probability=ratio.tail,
        adjusted=counts,
        differs=counts < ALPHA,
        shown_from=ratio.smallest(alpha),
        method=ratio.method,
    )


def _caveat(metric: str, first: Run, other: Run) -> str | None:
    mine, theirs = first.caveats.get(metric), other.caveats.get(metric)
    if mine == theirs:
        return None
    return " ".join(f"{run.tool}: {text}." for run, text in ((first, mine), (other, theirs)) if text)
