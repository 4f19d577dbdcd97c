"""Turns that were planned and never became due, by what kept them from it.

Pure. In a conversation all of them follow one turn, the last that was due: what became of it is their reason too.
"""

from __future__ import annotations

from typing import NamedTuple

import polars as pl

from loadstone.metrics import Tables
from loadstone.read.outcome import NOT_SENT, SUCCESSES

CONVERSATION = ("phase", "conversation")


class NeverDue(NamedTuple):
    """Later turns that never became due."""

    not_begun: int
    """Of conversations of which not even the first turn was sent."""
    held_up: int
    """After a turn that failed, was cancelled, was lost, or had not ended when the load did."""
    too_late: int
    """After a turn that was answered: their own time would have come after the stop."""


def never_due(tables: Tables) -> NeverDue:
    """The later turns that never became due, each counted once."""
    rows = tables.requests.select(
        *CONVERSATION,
        "outcome",
        turn=pl.col("turn").fill_null(0),
        missed=pl.Series(tables.never_due),
        opens=pl.Series(tables.opens),
    )
    before = rows.filter(~pl.col("missed")).sort("turn").unique(CONVERSATION, keep="last")
    waiting = rows.filter(pl.col("missed") & (pl.col("turn") > 0)).select(CONVERSATION)
    known = waiting.join(before, on=CONVERSATION, how="left", nulls_equal=True)
    not_begun = pl.col("outcome").is_null() | (pl.col("opens") & (pl.col("outcome") == NOT_SENT))
    answered = pl.col("outcome").is_in(list(SUCCESSES)).fill_null(False)
    unbegun, late = (int(known.select(kind.sum()).item()) for kind in (not_begun, answered))
    return NeverDue(unbegun, len(known) - unbegun - late, late)
