"""Notices about the way answers came: in one piece, whole, compressed, by a detour, with an end missing."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import polars as pl

from loadstone.figures import brief, counted
from loadstone.metrics import Tables
from loadstone.read.outcome import HTTP_RATE_LIMITED
from loadstone.wire.inflate import inflate

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
    yield from _about_compression(tables)
    if redirected := int((requests["redirects"].fill_null(0) > 0).sum()):
        yield (
            f"{counted(redirected, 'request')} went on to where the server redirected them: their latencies hold the detour."
            " Give that address as --url."
        )
    if unfinished := int(requests["unfinished_event"].fill_null(False).sum()):
        yield f"{counted(unfinished, 'answer')} ended within their last event, without a blank line; it counted all the same."
    yield from _about_rate_limits(requests)


def _about_compression(tables: Tables) -> Iterator[str]:
    """What came compressed and was decoded all the same, and what we have no decoder for."""
    names = tables.requests["compressed"]
    answers = names.filter(pl.Series(tables.succeeded)).drop_nulls()
    if len(answers):
        dated = (
            ": tokens are dated by the end of their compressed block, so gaps are those of blocks"
            if tables.streaming
            else ""
        )
        yield f"{counted(len(answers), 'answer')} came compressed ({_named(answers)}), which was not asked for{dated}."
    foreign = names.filter(
        names.is_in([name for name in names.unique().drop_nulls() if not _decodable(name)])
    )
    if len(foreign):
        yield (
            f"{counted(len(foreign), 'response')} came in an encoding that was not asked for and cannot be decoded here"
            f" ({_named(foreign)}). Turn compression off in the server, or in what stands before it."
        )


def _decodable(encoding: str) -> bool:
    return inflate((), encoding, 0).fault is None


def _named(encodings: pl.Series) -> str:
    return ", ".join(encodings.unique(maintain_order=True)[:MOST_ENCODINGS])


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
