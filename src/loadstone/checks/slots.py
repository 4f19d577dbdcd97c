"""Whether the client kept the slots of a cap filled while requests waited for one.

Where it did not, the client bounds the load, though the queue looks like that behind a slow server.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from loadstone.checks.evidence import Verdict, answer, slower
from loadstone.figures import brief
from loadstone.metrics import Missing, Tables, capped
from loadstone.metrics.load import sent_rate
from loadstone.plan.schedule import Phase
from loadstone.plan.store import REST_NS
from loadstone.report import Check

FILLED = 0.95
FILLED_LEAST = 0.90
"""The load that went through, as a share of what the slots would have let through. A client with room fills a slot again
within 0.5 ms, and stays above the first where an answer takes 10 ms; below the second it kept a tenth back itself."""
LEAST_WAITING = 5
"""Fewer requests wait now and then because each is sent a moment late, and are no queue."""

Ints = NDArray[np.int64]


class Filled(NamedTuple):
    """How full the slots of a phase were while requests waited that could have filled them."""

    load: Phase
    in_flight: float
    """The mean number of requests under way in that time; 0 where there was none."""
    slots: float
    share: float
    """In flight / (in flight + slots left free in that time), over the whole phase."""


@lru_cache(maxsize=1)  # several checks ask for the same run, and it takes a second for a million requests
def slots_filled(tables: Tables) -> Check | None:
    """Of the phases with due times and a cap, whether a slot stood free while requests waited; None where there is none.

    DEGRADED when that kept back more than 5 % of the load, INVALID (client-bound) when more than 10 %; a burst is no rate that the client did not keep, and DEGRADED at most. Left out are phases with a limit of the
    prefill, whose slots stand free for that, and conversations, which keep theirs while they think.
    """
    found = [filled for phase in tables.by_phase if (filled := _filled(phase))]
    if not found:
        return None
    worst = min(found, key=lambda filled: filled.share)
    if worst.share >= FILLED:
        finding = "while requests waited, the slots were in use."
        return answer("offered_load", "VALID", 100 * worst.share, "%", finding)
    phase = tables.of_phases(worst.load.name)
    rate = sent_rate(phase)
    ceiling = "" if isinstance(rate, Missing) else f"; it got no further than {brief(rate)} requests/s"
    finding = (
        f"client-bound: while requests waited, {brief(worst.in_flight)} of {brief(worst.slots)} slots were in use on"
        f" average{ceiling}."
    )
    grave = worst.share < FILLED_LEAST and worst.load.pattern != "burst"
    verdict: Verdict = "INVALID" if grave else "DEGRADED"
    advice = f"{slower(phase)}, or give the client more --workers and cores of its own."
    return answer("offered_load", verdict, 100 * worst.share, "%", finding, advice)


def _filled(tables: Tables) -> Filled | None:
    """How full the slots of one phase were; None where that does not tell of the client."""
    (log,) = tables.phases
    load = next((load for load in tables.loads if load.name == log.name), None)
    if load is None or not capped(load) or load.prefill or not load.slots or not tables.opens.all():
        return None
    steps = np.array(load.slot_steps)
    waited, flown = _waited(tables), _flown(tables)
    moments = np.unique(np.concatenate([*waited, *flown, log.start_ns + steps[:, 0]]))
    slots = steps[np.maximum(np.searchsorted(log.start_ns + steps[:, 0], moments, "right") - 1, 0), 1]
    waiting, flying = _level(*waited, moments), _level(*flown, moments)
    free = np.maximum(slots - flying, 0)
    lasted_ns = np.diff(moments, append=moments[-1:]).astype(float)
    queued_ns = np.where((waiting > LEAST_WAITING) & (waiting >= free), lasted_ns, 0.0)
    went, kept_back = float(flying @ lasted_ns), float(free @ queued_ns)
    over_ns = float(queued_ns.sum()) or 1.0
    share = went / (went + kept_back) if went else 1.0
    return Filled(load, float(flying @ queued_ns) / over_ns, float(slots @ queued_ns) / over_ns, share)


def _waited(tables: Tables) -> tuple[Ints, Ints]:
    """When requests began to wait, and when each stopped, with its sending or the connecting before that."""
    left = pl.min_horizontal("left_queue_ns", "connect_ns")
    waits = tables.requests.select("due_ns", "connect_ns", tables.left_queue_ns)
    waited = waits.select("due_ns", left_ns=pl.max_horizontal("due_ns", left)).drop_nulls()
    return waited["due_ns"].to_numpy(), waited["left_ns"].to_numpy()


def _flown(tables: Tables) -> tuple[Ints, Ints]:
    """When requests took a slot, and when each gave it back: one that failed without an answer lets it rest."""
    unheard = pl.Series(tables.failed) & tables.requests["first_ns"].is_null()
    ended = pl.coalesce("done_ns", "last_ns", "sent_ns") + pl.when(unheard).then(REST_NS).otherwise(0)
    begun = pl.coalesce("connect_ns", "sent_ns")
    flown = tables.requests.select(begun_ns=begun, ended_ns=ended).drop_nulls()
    return flown["begun_ns"].to_numpy(), flown["ended_ns"].to_numpy()


def _level(came_ns: Ints, went_ns: Ints, moments_ns: Ints) -> Ints:
    """How many had come and not gone at each of the moments."""
    came, went = (np.searchsorted(np.sort(at_ns), moments_ns, "right") for at_ns in (came_ns, went_ns))
    return came - went
