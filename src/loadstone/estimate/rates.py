"""How far a rate of a whole run, ramp and drain included, may be from that of other runs of the same kind.

A rate is what the requests brought over the window. It errs in two ways. Requests differ, in what they bring and in the time they
take up: the error of a ratio over requests, in the order of sending. And the drain, from the last send to the last answer,
differs from run to run, by the length of the longest answers under way: it is played again, with times drawn from those
of the run. What time a request takes up depends on what makes the next one go out:

- Open loop: the clock. A request takes up the time to the next send; the drain is shared out among all.
- Closed loop: the end of another one. Slots x window is the sum of the times in flight (Little, 1961) and what stood idle
  in the drain, so a request takes up its own time in flight, stretched until all together make the window. The first
  requests of all slots find the server empty and the last ones leave it so: they are slower or faster in every run,
  which is no noise, and how requests differ is told by the others.

An answer's tokens are never put at one moment, so that neither the ramp nor cohorts of equal answers pass for noise.
"""

from __future__ import annotations

import math
from heapq import heapreplace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from loadstone.estimate import LEAST, Estimate, batches, withheld
from loadstone.estimate.spread import Floats
from loadstone.estimate.student import normal

LATENCIES = 2.5
"""A window of fewer mean latencies is ramp and drain for the most part, and what a run lasts on is not in it."""
FOLLOWED = 0.02
"""Of the mean latency, the time within which a request that ended is followed by the next one."""
PLAYED = 200
"""Drains played, of which the spread is known to 5 % then."""
ROUNDS = 32
"""Requests a slot that a closed loop is played for at most: by then nobody knows any more that all slots began together."""
LAST = 10_000
"""Requests under way at the last send, of which one may end last; earlier ones hardly ever do."""
MOST_DRAWN = 2_000_000
"""Times drawn in all, unless ten plays take more."""


class Paced(NamedTuple):
    """What time each request took up, in the order of sending, and how the drain errs."""

    spent: Floats
    """Their sum is the window."""
    settled: NDArray[np.bool_]
    """Which of them tell how requests differ."""
    drain: float
    """The standard error of the window through its drain, as a share of the window."""
    latencies: float
    """The window in mean latencies."""
    by_ends: bool = False
    """A closed loop: where its requests take a little longer each, others are the last ones, so the same work has another drain."""


def open_loop(sent: Floats, ended: Floats, *, by_time: bool) -> Paced:
    """Requests sent by the clock, in the order of sending, in any unit of time.

    Where the load stopped after a time (`by_time`) and not after a number of requests, that number is what differs from run to
    run, while the time does not: gaps are then stretched to the window instead of all lengthened by as much.
    """
    window, gaps = _window(sent, ended), np.diff(sent, append=sent[-1:])
    if len(gaps) > 1:  # to a send that there was not
        gaps[-1] = min(float(gaps[:-1].mean()), window - float(gaps.sum()))
    sending = float(gaps.sum())
    stretched = by_time and sending > 0
    spent = gaps * (window / sending) if stretched else gaps + (window - sending) / len(gaps)
    settled = np.ones(len(sent), np.bool_)
    return Paced(spent, settled, _drain(sent, ended) / window, window / _mean(ended - sent))


def closed_loop(sent: Floats, ended: Floats, slots: int) -> Paced:
    """Requests of which each was sent when another one ended, so that all `slots` were taken until the drain."""
    window, times = _window(sent, ended), ended - sent
    busy, settled = float(times.sum()), np.ones(len(times), np.bool_)
    if len(times) >= 2 * slots + LEAST:
        settled[:slots] = settled[-slots:] = False
    return Paced(
        times * (window / busy), settled, _idle(times, slots) / busy, window / _mean(times), by_ends=True
    )


def joined(parts: list[Paced]) -> Paced:
    """Several stretches of time, one after the other."""
    spent = [float(part.spent.sum()) for part in parts]
    error = math.hypot(*(part.drain * lasted for part, lasted in zip(parts, spent, strict=True)))
    whole, settled = (np.concatenate(arrays) for arrays in zip(*(part[:2] for part in parts), strict=True))
    by_ends = any(part.by_ends for part in parts)
    return Paced(whole, settled, error / sum(spent), min(part.latencies for part in parts), by_ends)


def rate(amounts: Floats, paced: Paced) -> Estimate:
    """The interval of sum(amounts) / window, in the inverse of the unit of time.

    Both errors together, on the scale of logarithms: where the window came out too long, the rate is too low in proportion.
    """
    if paced.latencies < LATENCIES:
        needs = math.ceil(len(amounts) * LATENCIES / max(paced.latencies, 1 / len(amounts)))
        return withheld(
            batches.METHOD,
            f"the run lasted as long as {paced.latencies:.1f} requests behind each other, so it is ramp and drain for the"
            f" most part; an interval takes {LATENCIES:g} times the mean latency.",
            needs,
        )
    value = float(amounts.sum() / paced.spent.sum())
    told = paced.settled if amounts[paced.settled].any() else np.ones(len(amounts), np.bool_)
    settled = amounts[told], paced.spent[told]
    found = batches.ratio(*settled)
    if found.low is None or found.high is None or not value > 0:
        return found._replace(effective=None)
    middle = float(settled[0].sum() / settled[1].sum())
    fewer = math.sqrt(len(settled[0]) / len(amounts))
    drain = normal() * paced.drain
    down, up = (math.hypot((end / middle - 1) * fewer, drain) for end in (found.low, found.high))
    return found._replace(low=value * math.exp(-down), high=value * math.exp(up), effective=None)


def at_once(sent: Floats, ended: Floats) -> Floats:
    """How many requests were under way just after each send, when what ended together has been followed; `sent` in order."""
    after = sent + FOLLOWED * _mean(ended - sent)
    begun = np.searchsorted(sent, after, side="right")
    return np.asarray(begun - np.searchsorted(np.sort(ended), after, side="right"), np.float64)


def _drain(sent: Floats, ended: Floats) -> float:
    """How much the time from the last send to the last end differs between runs (standard deviation)."""
    times, ages = ended - sent, sent[-1] - sent
    ages = ages[ages <= times.max()][-LAST:]
    random = np.random.default_rng(0)
    return float(np.std([(random.choice(times, len(ages)) - ages).max() for _ in range(_plays(len(ages)))]))


def _idle(times: Floats, slots: int) -> float:
    """How much the time that slots stand idle in the drain differs between runs (standard deviation).

    A loop as long as the run, less whole rounds of all slots where it is long: where cohorts end together, it counts which
    of a round is the last one.
    """
    count = len(times)
    last = min(count, ROUNDS * slots + count % slots)
    random, idle = np.random.default_rng(0), []
    for _ in range(_plays(last)):
        free = [0.0] * slots
        for time in random.choice(times, last).tolist():
            heapreplace(free, free[0] + time)
        idle.append(slots * max(free) - sum(free))
    return float(np.std(idle))


def _plays(requests: int) -> int:
    """Of so many requests each."""
    return min(max(MOST_DRAWN // requests, 10), PLAYED)


def _window(sent: Floats, ended: Floats) -> float:
    return float(ended.max() - sent[0])


def _mean(times: Floats) -> float:
    return max(float(times.mean()), float(np.finfo(np.float64).tiny))
