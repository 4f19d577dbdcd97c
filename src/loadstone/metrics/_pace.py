"""What time each request of a run took up: what the intervals of its rates are made from.

See `estimate.rates`. A closed loop goes by the ends of its requests, and so does a capped load whose slots are always taken; all
others go by the clock, also a loop whose slots stand idle between the turns of a conversation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from loadstone.estimate import rates
from loadstone.estimate.rates import Paced
from loadstone.stats import Floats

if TYPE_CHECKING:
    from loadstone.metrics._tables import Tables

ALWAYS = 0.9
"""The share of sends that take the last slot, from which on slots are always taken."""


class Pace(NamedTuple):
    """Which requests were sent, in that order, stretch by stretch, and the time that each took up, in seconds."""

    sent: NDArray[np.int64]
    paced: Paced


def paced(tables: Tables, amounts: Floats) -> tuple[Floats, Paced] | None:
    """What each request brought, in the order of sending, and what time it took up; None where nothing was sent.

    Of a part of a run it is what the part brought over the time of the whole.
    """
    whole, at = tables.whole
    pace = whole.pace
    if pace is None:
        return None
    brought = np.zeros(len(whole.requests))
    brought[at] = amounts
    return brought[pace.sent], pace.paced


def pace(tables: Tables) -> Pace | None:
    """The pace of tables that are no part of others; None where no time passed."""
    found = [one for stretch in tables.stretches if (one := _stretch(tables, stretch))]
    if not found:
        return None
    return Pace(np.concatenate([one.sent for one in found]), rates.joined([one.paced for one in found]))


def _stretch(tables: Tables, stretch: Tables) -> Pace | None:
    """That of a stretch of time; the requests are those of `tables`."""
    if stretch.window_ns is None or stretch.window_ns[0] == stretch.window_ns[1]:
        return None
    first_ns, last_ns = stretch.window_ns
    timed = any(load.timed for load in stretch.loads)
    # In a closed loop a request is due when a slot frees, and may have to wait for a place of the prefill in it.
    begun_ns = pl.col("sent_ns") if timed else pl.min_horizontal("sent_ns", "due_ns")
    moments = tables.requests.select(
        own=pl.col("phase").is_in([log.name for log in stretch.phases]) & pl.col("sent_ns").is_not_null(),
        begun_s=(begun_ns.clip(lower_bound=first_ns) - first_ns) / 1e9,
        ended_s=(tables.left_ns.clip(upper_bound=last_ns) - first_ns) / 1e9,
    )
    begun_s, ended_s = (moments[name].fill_null(0.0).to_numpy() for name in ("begun_s", "ended_s"))
    sent = np.flatnonzero(moments["own"].to_numpy())
    sent = sent[np.argsort(begun_s[sent], kind="stable")]
    begun_s, ended_s = begun_s[sent], np.maximum(ended_s[sent], begun_s[sent])
    at_once = rates.at_once(begun_s, ended_s)
    if _always_full(stretch, at_once) and (ended_s > begun_s).any():
        return Pace(sent, rates.closed_loop(begun_s, ended_s, int(at_once.max())))
    return Pace(sent, rates.open_loop(begun_s, ended_s, by_time=_by_time(stretch)))


def _always_full(stretch: Tables, at_once: Floats) -> bool:
    """Whether nearly every send took the last slot there was, as in a closed loop of single requests all do."""
    slots = [load.slots for load in stretch.loads]
    if not any(load.timed for load in stretch.loads):
        alone = all(load.one_turn for load in stretch.loads)
        return alone or bool((at_once >= np.maximum.accumulate(at_once)).mean() >= ALWAYS)
    filled = None if None in slots else at_once >= max(slot for slot in slots if slot is not None)
    return filled is not None and bool(filled.any()) and bool(filled[filled.argmax() :].mean() >= ALWAYS)


def _by_time(stretch: Tables) -> bool:
    """Whether the last phase was stopped by its duration."""
    log = max(stretch.phases, key=lambda log: log.stop_ns)
    load = next((load for load in stretch.loads if load.name == log.name), None)
    return bool(load and load.duration_ns is not None and log.stop_ns - log.start_ns >= load.duration_ns)
