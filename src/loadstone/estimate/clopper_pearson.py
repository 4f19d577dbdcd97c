"""The exact interval of a share (Clopper and Pearson, 1934): no p outside it makes what was seen likelier than 2.5 %.

Wilson's is right in the mean over all p, but of rare things its lower end is above the true p much too often: one hit in 170
trials is above 0.1 % by it, and at that p there is one in 16 % of all runs (Brown, Cai and DasGupta, Statistical Science 16,
2001). The exact one errs on neither side more often than it may, whatever n and p.

Trials that depend on each other count as fewer. Both hits and trials are divided then, and may be broken numbers: the interval
goes on between whole ones by the beta distribution (Korn and Graubard, Survey Methodology 24, 1998).
Pure Python: the load, which looks at what is beyond a limit while it runs, has no numpy.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from loadstone.estimate import LEVEL
from loadstone.estimate.beta import below

_BEYOND = (1 - LEVEL) / 2
MOST = 1e7
"""More trials than anybody asks for."""


@lru_cache(maxsize=4096)
def low(share: float, n: float) -> float:
    """The lower end: the p at which n trials, n > 0, have this share of hits, or more, with a probability of 2.5 %."""
    if share <= 0:
        return 0.0
    return _root(lambda p: _as_many(p, share, n) > _BEYOND, 0.0, share)


def high(share: float, n: float) -> float:
    """The upper end."""
    return 1 - low(1 - share, n)


def trials(share: float, end: float) -> float | None:
    """Of how many trials with this share of hits the interval ends at `end`, above the share or below; None: of none, or too many.

    Without a hit that is log(2.5 %) / log(1 - end), about 3.7 / end (the rule of three, for 97.5 %).
    """
    if end > share:
        share, end = 1 - share, 1 - end
    if not 0 < end < share:
        return None
    reached = 1.0
    while _as_many(end, share, reached) > _BEYOND:
        reached *= 2
        if reached > MOST:
            return None
    return _root(lambda n: _as_many(end, share, n) <= _BEYOND, 0.0, reached)


def _as_many(p: float, share: float, n: float) -> float:
    """The probability of at least this share of hits in n trials."""
    return below(p, share * n, n - share * n + 1)


def _root(passed: Callable[[float], bool], start: float, stop: float) -> float:
    """Where `passed` begins to hold, between a place where it does not and one where it does."""
    while stop - start > max(1e-9 * stop, 1e-12):
        middle = (start + stop) / 2
        start, stop = (start, middle) if passed(middle) else (middle, stop)
    return start
