"""Intervals for quantiles: two samples of the sorted ones, so near to the quantile as chance lets a count err.

Whatever the distribution, the true quantile x has the share q of all values below it, and of n independent samples a
binomial number. So the interval reaches from one rank to another (Wilks, 1941; David and Nagaraja, Order Statistics, 7.1).

Where samples hang together that number varies more. How much more tells the series of zeros and ones "above the
quantile or not": it is the series of a share, and its mean errs like one (`spread`). At the tail of a queue those above
come in crowds, and it is the crowds that count. The share of samples below the true quantile is then within q +- t * error,
and the samples at these shares are the ends of the interval.

Where q + t * error is above 1 the sample does not reach that far: the true quantile may be beyond all that was seen. The
interval is then open above. That is kept, not withheld: runs whose interval happens to be closed are those that
missed a crowd, and to give these alone would make them wrong far oftener than one time in twenty.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache

import numpy as np

from loadstone.estimate import LEAST, LEVEL, Estimate, too_few, withheld
from loadstone.estimate.beta import binomial_below
from loadstone.estimate.skewness import handed_on, reach
from loadstone.estimate.spread import ALIKE, Floats, independent, means, of_batches, spread, varies
from loadstone.histogram import Histogram

METHOD = "order statistics"


def quantile(values: Floats, q: float) -> Estimate:
    """The interval of quantile `q`, 0 < q < 1, from values in time order."""
    return quantiles(values, [q])[0]


def quantiles(values: Floats, wanted: Sequence[float]) -> list[Estimate]:
    """Those of several quantiles, for which the values are sorted once."""
    if len(values) < LEAST:
        return [too_few(METHOD, len(values)) for _ in wanted]
    ordered = np.sort(values)
    beyond = [(values > _at(ordered, q)).astype(np.float64) for q in wanted]
    if independent(values) and all(varies(one) < ALIKE for one in beyond):
        return [_exact(ordered, q) for q in wanted]
    parts = means(values)
    return [_correlated(ordered, q, one, parts) for q, one in zip(wanted, beyond, strict=True)]


def _correlated(ordered: Floats, q: float, beyond: Floats, parts: Floats) -> Estimate:
    """The interval from sorted values that hang together.

    `beyond` is 1 for those above the quantile, in time order; `parts` are the means of parts of the run.
    """
    count, found = len(ordered), spread(beyond)
    error = math.sqrt(q * (1 - q) * found.inflation / count)
    low, high = _shares(q, found.t, error, _skew(parts, means(beyond)))
    bottom = float(ordered[max(math.floor(low * count), 1) - 1])
    effective = count / found.inflation
    if high >= 1:
        return _open(bottom, effective, needs=_rounded(count * ((high - q) / (1 - q)) ** 2))
    return Estimate(bottom, float(ordered[min(math.ceil(high * count), count - 1)]), METHOD, effective)


def _skew(parts: Floats, beyond: Floats) -> float:
    """Of a share above a quantile, as far as it goes up and down with the mean; both of the same parts of a run."""
    return of_batches(parts).skew * handed_on(parts, beyond)


def _shares(q: float, t: float, error: float, skew: float) -> tuple[float, float]:
    """Between which shares of samples below it the true quantile lies.

    An interval that is open above has no other end than the lower one, which then is left where t has it.
    """
    down, up = reach(t, skew)
    high = q + up * error
    return q - (max(down, t) if high >= 1 else down) * error, high


@lru_cache(maxsize=1024)
def positions(count: int, q: float) -> tuple[float, float] | None:
    """The same as `ranks`, but between ranks, where the probability on either side is what it should be, about.

    Whole ranks would hold the p99 of 1,000 in 97.6 %. Between two neighbours the end is the mean of both, weighted so that
    it is right for about all distributions (Nyblom, 1992; for the median Hettmansperger and Sheather, 1986).
    """
    found = ranks(count, q)
    if found is None:
        return None
    low, high = found
    return low + _between(low, count, q), high - _between(count + 1 - high, count, 1 - q)


def _between(rank: int, count: int, q: float) -> float:
    """How far beyond `rank` the lower end lies, of the way to the next."""
    beyond = (1 - LEVEL) / 2
    spare = (count - rank) * q * (beyond - binomial_below(rank, count, q))
    short = rank * (1 - q) * (binomial_below(rank + 1, count, q) - beyond)
    return spare / (spare + short)


@lru_cache(maxsize=1024)
def ranks(count: int, q: float, level: float = LEVEL) -> tuple[int, int] | None:
    """The ranks, from 1, of the samples between which quantile `q` lies with at least the probability `level`.

    As near to each other as the rest, (1 - level) / 2 at most, allows on either side. None where there are too few samples.
    """
    beyond = (1 - level) / 2
    low = _largest(count, lambda rank: binomial_below(rank, count, q) <= beyond)
    high = count + 1 - _largest(count, lambda rank: binomial_below(rank, count, 1 - q) <= beyond)
    return (low, high) if low >= 1 and high <= count else None


def needed(q: float, level: float = LEVEL, beyond: int = 1) -> int:
    """Independent samples of which at least `beyond` lie above quantile `q` with the probability `level`.

    The smallest n with P(Binomial(n, 1 - q) >= beyond) >= level (Wilks, 1941). For p99 at 99 % that is 459; 662 where one
    exceedance is allowed, which is `beyond` = 2: even without its largest sample the rest reaches beyond the quantile.
    """

    def enough(count: int) -> bool:
        return binomial_below(beyond, count, 1 - q) <= 1 - level

    above = beyond
    while not enough(above):
        above *= 2
    return _largest(above, lambda count: not enough(count)) + 1


def pooled(histograms: Sequence[Histogram], q: float) -> Estimate:
    """The interval of quantile `q` of all samples, from the histograms of parts of equal length in time order.

    The share below the quantile is a ratio of sums over the parts: below, over all. Its error is that of the mean of
    (share - q) * weight, over the mean weight.
    """
    parts = [part for part in histograms if part.weight > 0]
    if len(parts) < LEAST:
        return withheld(
            METHOD, f"the samples are in {len(parts)} parts of the run, and an interval takes {LEAST}."
        )
    whole = Histogram.merged(parts)
    weights = np.array([part.weight for part in parts])
    middle = whole.quantile(q)
    below = np.array([part.share_below(middle) for part in parts])
    at = float(below @ weights) / float(weights.sum())
    found = of_batches(means((below - at) * weights / weights.mean()))
    of_parts = np.array([part.mean for part in parts])
    values = means((of_parts - float(of_parts @ weights) / float(weights.sum())) * weights)
    skew = _skew(values, means((at - below) * weights))
    least = math.sqrt(q * (1 - q) / float(weights.sum()))
    error = max(found.error, least)
    low, high = _shares(q, found.t, error, skew)
    effective = q * (1 - q) / error**2
    bottom = whole.quantile(max(low, 0.0))
    if high >= 1:
        return _open(bottom, effective)
    return Estimate(min(bottom, middle), max(whole.quantile(high), middle), METHOD, effective)


def _at(ordered: Floats, q: float) -> float:
    """Quantile `q` itself, at position q (n - 1) (see `stats.summarise`)."""
    below = int(q * (len(ordered) - 1))
    low, high = float(ordered[below]), float(ordered[min(below + 1, len(ordered) - 1)])
    return low + (high - low) * (q * (len(ordered) - 1) - below)


def _exact(ordered: Floats, q: float) -> Estimate:
    """The interval from independent samples."""
    count = len(ordered)
    found = positions(count, q)
    if found is None:
        needs = needed(max(q, 1 - q), (1 + LEVEL) / 2)
        reason = f"its interval takes {needs:,} independent samples, and there are {count:,}."
        return withheld(METHOD, reason, needs)
    low, high = (float(np.interp(position - 1, np.arange(count), ordered)) for position in found)
    return Estimate(low, high, METHOD, count)


def _open(low: float, effective: float, needs: int | None = None) -> Estimate:
    """An interval that has no upper end."""
    about = f"about {needs:,} requests such as these" if needs else "more requests"
    reason = f"how far above that it may be is not known: values that high came in too few separate bursts; {about} would tell."
    return Estimate(low, None, METHOD, effective, reason, needs)


def _rounded(count: float) -> int:
    """Up to two figures: it is an estimate."""
    step: int = 10 ** max(math.floor(math.log10(count)) - 1, 0)
    return math.ceil(count / step) * step


def _largest(top: int, holds: Callable[[int], bool]) -> int:
    """The largest whole number from 0 to `top` for which `holds`; it does for 0 and, once it does not, for none above."""
    low, high = 0, top
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if holds(middle) else (low, middle - 1)
    return low
