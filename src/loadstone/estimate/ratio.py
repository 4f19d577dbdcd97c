"""Two runs by one statistic: their ratio (of shares the difference), its interval, and what it could have shown.

The error is the spread of the logarithm of the ratio over resamples in blocks (`estimate.blocks`). With pairs, the same work
on either side, the same draws go to both, so that what both have in common, such as the load, cancels.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from loadstone.estimate import LEVEL
from loadstone.estimate.blocks import Blocks, blocks, draws
from loadstone.estimate.spread import spread
from loadstone.estimate.statistic import Floats, Percentile, Statistic
from loadstone.estimate.student import normal, t
from loadstone.estimate.tails import two_sided

ALPHA = round(1 - LEVEL, 9)
"""How often chance alone may pass for a difference."""
POWER = 0.8
"""With which probability a difference is to be found that is said to be large enough."""
RESAMPLES = 1000
INDEPENDENT = 40
"""Independent observations that an error is told from; with fewer, errors come out too small (bench/compare_power.py)."""
TOO_SHORT = "too few independent requests to tell its error; it takes a longer run."
NO_SPREAD = (
    "runs of one side do not differ at all, which says nothing of chance; compare one run of each side."
)
"""Few runs agree to the last digit where numbers come in steps, and not for certainty."""
TOO_ALIKE = "too few values beyond this percentile are independent of each other; it takes a longer run."
"""Were all of them independent, there would be enough (`stats.BEYOND`)."""
MOST = 100.0
"""A logarithm of a ratio beyond which nothing is told."""
ROUNDING = 1e-9
"""A relative error that is smaller than this is none: both sides are the same numbers."""


class Ratio(NamedTuple):
    """B against A: B / A, or of shares B - A (`difference`)."""

    value: float
    error: float
    """Standard error of the logarithm of the ratio; of a difference its own."""
    freedom: float
    """Degrees of freedom of the error: how well it is known itself."""
    method: str
    difference: bool = False

    @property
    def away(self) -> float:
        """The logarithm of the ratio, or the difference: 0 where there is none."""
        return self.value if self.difference else math.log(self.value)

    @property
    def tail(self) -> float:
        """How likely chance alone is to make so large a difference."""
        if not self.error:
            return 1.0 if abs(self.away) <= ROUNDING else 0.0
        return two_sided(self.away / self.error, self.freedom)

    def interval(self, alpha: float = ALPHA) -> tuple[float, float]:
        """Where the true ratio (or difference) lies, but in a share `alpha` of all cases."""
        half = t(self.freedom, 1 - alpha) * self.error
        low, high = self.away - half, self.away + half
        return (low, high) if self.difference else (math.exp(max(low, -MOST)), math.exp(min(high, MOST)))

    def smallest(self, alpha: float = ALPHA) -> float:
        """The smallest difference that would have been shown with a probability of 80 %: (t + z) x error.

        As a share of A's number (0.05: 5 %); of a difference in its unit. The normal quantile z of the power and Student's t
        of `alpha` add up.
        """
        least = (t(self.freedom, 1 - alpha) + NormalDist().inv_cdf(POWER)) * self.error
        return least if self.difference else math.expm1(min(least, MOST))

    def power(self, change: float, alpha: float = ALPHA) -> float:
        """The probability with which a true change is shown (0.03: B is 3 % above A; of a difference in its unit)."""
        if not self.error:
            return 1.0
        away = abs(change if self.difference else math.log1p(change)) / self.error
        needed = t(self.freedom, 1 - alpha)
        chance = NormalDist()
        return chance.cdf(away - needed) + chance.cdf(-away - needed)


class Untold(NamedTuple):
    """Why two runs cannot be told apart, or together, by a statistic."""

    reason: str
    value: float | None = None
    """The ratio or difference all the same, where there is one."""


def compared(
    a: Statistic,
    b: Statistic,
    *,
    paired: bool,
    difference: bool = False,
    least_error: float = 0.0,
    seed: int = 0,
    resamples: int = RESAMPLES,
) -> Ratio | Untold:
    """B against A. With `paired`, part i of either is the same work.

    `least_error` is for shares: where hardly anything was hit, resamples know of nothing else.
    """
    at_a, at_b = a.value, b.value
    if not (math.isfinite(at_a) and math.isfinite(at_b)):
        return Untold("one of the sides has no value.")
    if not difference and not (at_a > 0 and at_b > 0):
        return Untold("a ratio needs numbers above 0.")
    value = at_b - at_a if difference else at_b / at_a
    hang = _hang(a, b, paired, difference)
    if not all(INDEPENDENT * one.inefficiency <= len(series) for one, series in hang):
        return Untold(TOO_SHORT, value)
    if not all(one.sharp() for one in (a, b) if isinstance(one, Percentile)):
        return Untold(TOO_ALIKE, value)
    errors = _errors(_drawn(a, b, paired, hang, seed, resamples), paired, difference)
    errors = [error * one.widened for error, (one, _) in zip(errors, hang, strict=True)]
    if not all(map(math.isfinite, errors)):
        return Untold("resamples of so few values have no spread.", value)
    # How well an error is known itself: by the blocks there are, and by how unequal stretches of the run are.
    freedoms = [min(1.5 * len(series) / one.length, spread(series).freedom) for one, series in hang]
    error = max(math.hypot(*errors), least_error)
    return Ratio(
        value,
        error if error > ROUNDING else 0.0,
        _welch(errors, freedoms),
        "block bootstrap of pairs" if paired else "block bootstrap",
        difference,
    )


def over_runs(
    a: Sequence[float], b: Sequence[float], *, paired: bool, difference: bool = False
) -> Ratio | Untold:
    """The same for sides of several runs, by how much the runs of a side differ (Welch; with `paired` run i beside run i).

    The ratio is that of the geometric means.
    """
    count = min(len(a), len(b))
    if count < 2:
        return Untold("it takes two runs of each side.")
    if not difference and min(*a, *b) <= 0:
        return Untold("a ratio needs numbers above 0.")
    xs, ys = (np.array(side) if difference else np.log(side) for side in (a, b))
    if paired and len(a) == len(b):
        away = ys - xs
        errors, freedoms = [float(away.std(ddof=1)) / math.sqrt(count)], [count - 1.0]
    else:
        errors = [float(side.std(ddof=1)) / math.sqrt(len(side)) for side in (xs, ys)]
        freedoms = [len(side) - 1.0 for side in (xs, ys)]
    apart = float(ys.mean() - xs.mean())
    error = math.hypot(*errors)
    if error <= ROUNDING:
        error, apart = 0.0, 0.0 if abs(apart) <= ROUNDING else apart
    value = apart if difference else math.exp(apart)
    if not error and apart:
        return Untold(NO_SPREAD, value)
    return Ratio(value, error, _welch(errors, freedoms), "Student t over runs", difference)


def of_intervals(
    a: tuple[float, float, float], b: tuple[float, float, float], *, difference: bool = False
) -> Ratio:
    """The same where only a value and its 95 % interval (value, low, high) are known of each."""
    errors = []
    for _, low, high in (a, b):
        width = high - low if difference else math.log(high / low)
        errors.append(width / 2 / normal())
    value = b[0] - a[0] if difference else b[0] / a[0]
    return Ratio(value, math.hypot(*errors), math.inf, "the intervals of both", difference)


def _hang(a: Statistic, b: Statistic, paired: bool, difference: bool) -> list[tuple[Blocks, Floats]]:
    """How long requests hang together, for each series that is drawn from."""
    of_a, of_b = a.influence(), b.influence()
    if not paired:
        return [(blocks(of_a), of_a), (blocks(of_b), of_b)]
    apart = of_b - of_a if difference else of_b / b.value - of_a / a.value
    return [(blocks(apart), apart)]


def _drawn(
    a: Statistic,
    b: Statistic,
    paired: bool,
    hang: Sequence[tuple[Blocks, Floats]],
    seed: int,
    resamples: int,
) -> tuple[Floats, Floats]:
    times = [
        draws(len(series), round(one.length), resamples, 2 * seed + side)
        for side, (one, series) in enumerate(hang)
    ]
    rng = np.random.default_rng(seed)
    return a.drawn(times[0], rng), b.drawn(times[0] if paired else times[1], rng)


def _errors(drawn: tuple[Floats, Floats], paired: bool, difference: bool) -> list[float]:
    """The spread of the ratio over the resamples of pairs, or of either side by itself."""
    with np.errstate(divide="ignore", invalid="ignore"):
        a, b = drawn if difference else (np.log(drawn[0]), np.log(drawn[1]))
    sides = [b - a] if paired else [a, b]
    return [float(np.std(side[np.isfinite(side)])) if np.isfinite(side).any() else math.nan for side in sides]


def _welch(errors: Sequence[float], freedoms: Sequence[float]) -> float:
    """The degrees of freedom of a sum (Welch and Satterthwaite), at least 1.

    To two figures: they are known no better, and Student's t is worked out once for all that are alike.
    """
    below = sum(error**4 / freedom for error, freedom in zip(errors, freedoms, strict=True))
    if below <= 0:
        return math.inf
    return max(float(f"{sum(error**2 for error in errors) ** 2 / below:.2g}"), 1.0)
