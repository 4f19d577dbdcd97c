"""Pauses within answers: how long the longest was, how many were too long, and how long a reader would have waited.

From the real gaps between the instants of each stream, a part at a time, so that what is held is a few numbers a request.
Knows no metric.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from loadstone.metrics._streams import Part, not_first, parts
from loadstone.stats import Floats

if TYPE_CHECKING:
    from loadstone.metrics._tables import Tables

ROUNDING_NS = 1000.0
"""A reader who waits for less has not waited: running sums of tokens are rounded."""


class Pauses(NamedTuple):
    """One entry a request; NaN where its answer has no two instants."""

    longest_ms: Floats
    """The longest gap; of several choices the longest of any."""
    stalls: Floats
    """Gaps longer than `slo.stall_ms`, of all choices."""
    stalled_ms: Floats
    """Their length, of all choices."""
    waited_ms: Floats
    """How long a reader waited who reads `slo.reading_speed` tokens a second; of several choices the longest of any."""


def pauses(tables: Tables) -> Pauses:
    """The pauses of every request."""
    slo = tables.config.slo
    found = Pauses(*np.full((len(Pauses._fields), len(tables.requests)), np.nan))
    for part in parts(tables):
        streams = _pauses(part, slo.stall_ms * 1e6, slo.reading_speed / 1e9)
        several = np.diff(part.begins) > 1
        rows = part.rows[several]
        firsts = np.flatnonzero(np.diff(rows, prepend=-1))
        for column, values, joined in zip(found, streams, _JOINED, strict=True):
            if len(rows):
                column[rows[firsts]] = joined.reduceat(values[several], firsts)
    return found


_JOINED = (np.maximum, np.add, np.add, np.maximum)
"""How the streams of one request make its entry, field by field."""


def _pauses(part: Part, stall_ns: float, tokens_per_ns: float) -> Pauses:
    """The pauses of every stream of a part.

    A reader who reads on needs the tokens of an instant when those before it are read. Until the last of them came she has
    waited as long as the one that was latest by that measure: W = max over the instants of (at - first) - tokens before / V.
    """
    first = part.begins[:-1]
    gap_ns = np.where(not_first(part), np.diff(part.at_ns, prepend=part.at_ns[0]), 0)
    stalled = gap_ns > stall_ns
    elapsed_ns = part.at_ns - np.repeat(part.at_ns[first], np.diff(part.begins))
    running = np.cumsum(part.tokens) - part.tokens
    before = running - np.repeat(running[first], np.diff(part.begins))
    waited_ns = np.maximum.reduceat(elapsed_ns - before / tokens_per_ns, first)
    return Pauses(
        longest_ms=np.maximum.reduceat(gap_ns, first) / 1e6,
        stalls=np.add.reduceat(stalled.astype(float), first),
        stalled_ms=np.add.reduceat(np.where(stalled, gap_ns, 0), first) / 1e6,
        waited_ms=np.where(waited_ns < ROUNDING_NS, 0.0, waited_ns / 1e6),
    )
