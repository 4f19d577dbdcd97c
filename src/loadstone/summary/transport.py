"""Notices about the way answers came: in one piece, whole, compressed, by a detour, with an end missing."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import polars as pl

from loadstone.figures import brief, counted
from loadstone.metrics import Tables
from loadstone.read.outcome import HTTP_RATE_LIMITED

MOST_ENCODINGS = 3


def about_transport(tables: Tables) -> Iterator[str]:
    """One sentence for each way that some answers came in and that changes what their times mean."""
    requests, good = tables.requests, tables.succeeded
    if coalesced := int((tables.coalesced & good).sum()):
        yield (
            f"{counted(coalesced, 'answer')} of {int(good.sum()):,} came in one piece, all tokens in one read: when each came"
            " cannot be told, so they have a latency but no time to first token, gap or speed. The server, or"
            " something before it, holds streams back, or the client reads late (see client_lag)."
        )
    if whole := int((tables.came_whole & good).sum()):
        yield (
            f"{counted(whole, 'answer')} of {int(good.sum()):,} came as one body although a stream was asked for: they have a"
            " latency but no time to first token or gap."
        )
    if compressed := requests["compressed"].is_not_null().to_numpy().sum():
        names = requests["compressed"].drop_nulls().unique(maintain_order=True)
        yield (
            f"{counted(int(compressed), 'answer')} came compressed ({', '.join(names[:MOST_ENCODINGS])}), which was not asked"
            " for: tokens are dated by the end of their compressed block, so gaps are those of blocks."
        )
    if redirected := int((requests["redirects"].fill_null(0) > 0).sum()):
        yield (
            f"{counted(redirected, 'request')} went on to where the server redirected them: their latencies hold the detour."
            " Give that address as --url."
        )
    if unfinished := int(requests["unfinished_event"].fill_null(False).sum()):
        yield f"{counted(unfinished, 'answer')} ended within their last event, without a blank line; it counted all the same."
    yield from _about_rate_limits(requests)


def _about_rate_limits(requests: pl.DataFrame) -> Iterator[str]:
    limited = requests.filter(pl.col("outcome") == HTTP_RATE_LIMITED)
    if limited.is_empty():
        return
    asked_s = limited["retry_after_s"].drop_nulls().to_numpy()
    asked_s = asked_s[np.isfinite(asked_s)]
    told = ""
    if len(asked_s):
        low, high = brief(float(asked_s.min())), brief(float(asked_s.max()))
        span = low if low == high else f"{low} to {high}"
        told = f" The server asked to wait {span} s; a benchmark does not, its load is the one you set."
    yield f"The server's rate limit refused {counted(len(limited), 'request')} (HTTP 429).{told}"
