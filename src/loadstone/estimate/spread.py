"""How far the mean of a series may be from the true one, told by the series itself.

The series is cut into `BATCHES` parts of equal length, in time order (batch means; Law and Kelton, Simulation Modeling and
Analysis, 9.5.3). Their means hang together far less than the samples do, and what is left between neighbours is taken
for a process of first order, as in N-Skart (Tafazzoli, Steiger and Wilson, IEEE Trans. Automatic Control 56, 2011):
the variance of the whole mean is

    s^2 / k * (1 + r) / (1 - r)

with the variance s^2 of the k batch means and their correlation r, freed of its bias in short series (Kendall, 1954:
the mean of r is less than it should be by (1 + 3 r) / k).

How well that variance is known in turn decides which Student's t it goes with. A queue has quiet hours and rare crowds;
its variance is known far worse than that of k normal values. So its own variance is estimated in the same way,
from the squares d^2 of the batches' distances from the mean, and added to that of (1 + r) / (1 - r); the degrees of
freedom are 2 over the relative variance (Satterthwaite, 1946), less a half, since they are estimated too.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from loadstone.estimate.student import t

Floats = NDArray[np.float64]

BATCHES = 32
"""Parts of a series: enough to see how they hang together, and as long as that allows."""
MOST_CORRELATED = 0.9
"""Batches that seem to hang together more than this do so by their trend; nothing beyond is believed."""
_NOTICED = 0.75
"""A correlation counts from this share of its standard error, 1 / sqrt(k), on: below, chance alone would widen the interval."""

ALIKE = 2.0
"""Neighbours among independent samples correlate by less than this many standard errors, and their batches vary by less than
this many times what they should, nearly always."""
STEADY = 1.5
"""The same of the halves above and below the median, and of values: two standard errors of a variance of 32 batches. Where
answers differ much in length a queue shows little between neighbours, and much in batches."""
MANY = 400
"""Of so many samples a correlation that does not show, up to 2 / sqrt(n), makes the error of a mean wider by a tenth at most."""


class Spread(NamedTuple):
    """What is known of the error of a series' mean."""

    error: float
    """The standard error, in the unit of the series."""
    freedom: float
    """Of Student's t, from 1 on."""
    skew: float
    """Skewness of the mean."""
    inflation: float
    """How many times its variance is that of as many independent samples; at least 1."""

    @property
    def t(self) -> float:
        """The point of Student's t that goes with the error."""
        return t(self.freedom)


def spread(series: Floats) -> Spread:
    """The error of the mean of at least two values in time order."""
    own = float(series.var()) / len(series)
    found = of_batches(means(series))
    return found._replace(inflation=max(found.error**2 / own, 1.0) if own else 1.0)


def of_samples(series: Floats) -> Spread:
    """The same; of samples that stand alone, by the samples themselves rather than by batches of them."""
    return of_batches(series, alone=True) if alone(series) else spread(series)


def alone(series: Floats) -> bool:
    """Whether a mean may be taken for one of independent samples: many, and no crowd shows in their values either."""
    return len(series) >= MANY and independent(series) and varies(series) < STEADY


def varies(series: Floats) -> float:
    """How many times the variance of its batches is that of batches of independent samples."""
    own, parts = float(series.var()), means(series)
    return float(parts.var(ddof=1)) * len(series) / len(parts) / own if own else 1.0


def independent(series: Floats) -> bool:
    """Whether no correlation shows: neither between neighbours nor between batches, in being above or below the median.

    What lies on which side of the median has no tail, so chance is the same for all distributions (the runs test of Wald and
    Wolfowitz, 1940, by its serial correlation).
    """
    middle = np.median(series)
    sides = (series > middle).astype(np.float64) - (series < middle)
    sides -= sides.mean()
    square = float(sides @ sides)
    if square == 0:
        return True
    neighbours = float(sides[1:] @ sides[:-1]) / square
    return abs(neighbours) * math.sqrt(len(series)) < ALIKE and varies(sides) < STEADY


def means(series: Floats) -> Floats:
    """The means of `BATCHES` parts of nearly equal length; the values themselves where they are fewer than two each."""
    count = len(series)
    if count < 2 * BATCHES:
        return series
    starts = np.arange(BATCHES) * count // BATCHES
    sums: Floats = np.add.reduceat(series, starts)
    return sums / np.diff(starts, append=count)


def of_batches(batches: Floats, alone: bool = False) -> Spread:
    """The error of the mean of batches of equal weight; its `inflation` is beside that of independent batches.

    Where they stand `alone` what seems to be a correlation is chance.
    """
    k = len(batches)
    apart = batches - batches.mean()
    squares = apart * apart
    variance = float(squares.sum()) / (k - 1)
    if variance == 0:
        return Spread(0.0, k - 1, 0.0, 1.0)
    together = 1.0 if alone else _together(apart)
    excess = squares - squares.mean()
    of_variance = float(excess.var()) / k * (1.0 if alone else _together(excess)) / variance**2
    of_correlation = 4 * together / k if together > 1 else 0.0
    relative = of_variance + of_correlation
    freedom = min(2 / relative if relative else math.inf, k - 1) - 0.5
    skew = float((apart**3).mean()) / float(squares.mean()) ** 1.5 / math.sqrt(k)
    return Spread(math.sqrt(variance / k * together), max(freedom, 1.0), skew * math.sqrt(together), together)


def _together(apart: Floats) -> float:
    """(1 + r) / (1 - r), by which correlation between neighbours widens; 1 where none shows. `apart` has the mean 0."""
    k = len(apart)
    square = float(apart @ apart)
    if square == 0 or k < 4:
        return 1.0
    r = float(apart[1:] @ apart[:-1]) / square
    r = min((k * r + 1) / (k - 3), MOST_CORRELATED)
    return (1 + r) / (1 - r) if r > _NOTICED / math.sqrt(k) else 1.0
