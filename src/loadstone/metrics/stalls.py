"""Stalls: pauses within one answer, as its reader sees them.

From the gaps between instants at which tokens came, whole and not divided by the tokens they brought, over successes. A mean
or a pooled percentile hides them: one pause of two seconds in an answer of 500 tokens is one gap in 500.

A *stall* is a gap longer than `--stall-threshold`, 1,000 ms unless set otherwise: about the pause from which on people lose
the thread of what they are doing (Miller, 1968; the second of Nielsen's three limits, 1993). A server whose every step takes so long needs a
longer one.

The *reader* begins at the first token and reads `--reading-speed` tokens a second, 5.3 unless set otherwise: 238 words a minute,
the mean of silent reading of English non-fiction over 190 studies (Brysbaert, 2019), at 4/3 tokens a word. Who reads
faster than tokens come waits for them, as a film stops to be buffered. Tokens of reasoning are read like others.

An answer whose tokens came at one instant has no gap, and one that was coalesced none that can be told: both are left out. Of
several choices the worst one counts for a length, and all of them for a count and a sum.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from loadstone.metrics import Each, Missing, Number, Result, Tables, metric
from loadstone.stats import Floats

ORDER = 17

_ONE_PIECE = "every answer came in one piece, so there is no gap between tokens."


@metric("worst_stall", unit="ms", better="lower", needs=("streaming", "success"))
def worst_stall(tables: Tables) -> Each:
    """The longest pause of one answer: max of its gaps, one value a request, however long it is."""
    return Each(_told(tables, tables.pauses.longest_ms), _ONE_PIECE)


@metric("stall_count", unit="stalls", better="lower", needs=("streaming", "success"))
def stall_count(tables: Tables) -> Each:
    """How often one answer stalled: the number of its gaps > --stall-threshold; 0 for most."""
    return Each(_told(tables, tables.pauses.stalls), _ONE_PIECE, _threshold(tables))


@metric("stall_time", unit="ms", better="lower", needs=("streaming", "success"))
def stall_time(tables: Tables) -> Each:
    """How long one answer stood still: the sum of its gaps > --stall-threshold; 0 for most."""
    return Each(_told(tables, tables.pauses.stalled_ms), _ONE_PIECE, _threshold(tables))


@metric("stalled_answers", unit="%", better="lower", needs=("streaming", "success"))
def stalled_answers(tables: Tables) -> Result:
    """Share of the answers that stalled: 100 (answers with a gap > --stall-threshold) / (answers with a gap)."""
    return _share(tables, tables.pauses.stalls, lambda stalls: stalls > 0, _threshold(tables))


@metric("rebuffering_time", unit="ms", better="lower", needs=("streaming", "success"))
def rebuffering_time(tables: Tables) -> Each:
    """How long a reader of one answer waits for tokens after the first: max over its instants of (at - first) - b / V.

    V is --reading-speed, b the number of tokens that came before the instant. 0 where tokens always came before they were
    needed. It is all waiting together, not the longest: who has waited once is behind, and has more in hand when the
    next pause comes. Waiting for the first token is time_to_first_token, and no part of it.
    """
    return Each(_told(tables, tables.pauses.waited_ms), _ONE_PIECE, _reader(tables))


@metric("smooth_answers", unit="%", better="higher", needs=("streaming", "success"))
def smooth_answers(tables: Tables) -> Result:
    """Share of the answers that never make their reader wait: 100 (rebuffering_time = 0) / (answers with a gap)."""
    return _share(tables, tables.pauses.waited_ms, lambda waited: waited == 0, _reader(tables))


def _threshold(tables: Tables) -> str:
    return f"a stall is a pause longer than {tables.config.slo.stall_ms:,g} ms."


def _reader(tables: Tables) -> str:
    return f"read at {tables.config.slo.reading_speed:g} tokens/s."


def _told(tables: Tables, values: Floats) -> Floats:
    """The values of the answers whose gaps can be told."""
    return np.where(tables.coalesced, np.nan, values)


def _share(
    tables: Tables, values: Floats, hit: Callable[[Floats], NDArray[np.bool_]], note: str
) -> Number | Missing:
    """The share in percent of what is a hit among the values that can be told, in the order of sending."""
    order = np.argsort(tables.number("sent_ns"), kind="stable")
    told = _told(tables, values)[order]
    known = told[~np.isnan(told)]
    if not len(known):
        return Missing(_ONE_PIECE)
    hits = hit(known)
    return Number(100 * float(hits.mean()), note, hits=hits)
