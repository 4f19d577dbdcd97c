"""What a server was doing at every moment, as far as a client can see it: answers under way, their context, prefills.

A request decodes from its first token to its last, and is before its first token (queued, or in prefill) from `sent` to
then. Its context is its prompt and the tokens that have come, taken to come evenly. Knows no hardware.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from loadstone.metrics._streams import not_first, parts
from loadstone.metrics._tables import Tables
from loadstone.stats import Floats

Ints = NDArray[np.int64]

EVEN = 1.05
"""Tokens of a chunk above which it brought more than one, so that its gap is no step."""
MOST_GAPS = 4_000_000
"""Looked at in one run; the first ones tell as much as more would."""


class Course(NamedTuple):
    """Which requests were where, as sorted moments in seconds after `origin_ns`."""

    origin_ns: int
    sent_s: Floats
    began_s: Floats
    """First tokens, or where none came the request's end: it is before its first token no more."""
    first_s: Floats
    last_s: Floats
    first_sums: Floats
    """Of the requests whose first token has come, in that order: sums of prompts - rate x first, and of rates."""
    last_sums: Floats
    """The same in the order of last tokens."""

    def decoding(self, at_s: Floats) -> Ints:
        """Answers under way at these moments."""
        running: Ints = np.searchsorted(self.first_s, at_s, "right") - np.searchsorted(
            self.last_s, at_s, "right"
        )
        return running

    def context(self, at_s: Floats) -> Floats:
        """Tokens of all their contexts together."""
        base, rate = (
            self.first_sums[:, np.searchsorted(self.first_s, at_s, "right")]
            - self.last_sums[:, np.searchsorted(self.last_s, at_s, "right")]
        )
        found: Floats = np.maximum(base + rate * at_s, 0.0)
        return found

    def before_first(self, start_s: Floats, stop_s: Floats) -> Ints:
        """Requests that were before their first token at any time within each stretch."""
        found: Ints = np.searchsorted(self.sent_s, stop_s, "right") - np.searchsorted(
            self.began_s, start_s, "right"
        )
        return found


def course(tables: Tables) -> Course | None:
    """The course of a run, in all its phases: what runs beside a measured request takes from it, whatever phase it is of.

    None where no request brought more than one token as a stream.
    """
    everyone = tables.beside(
        "sent_ns", "first_ns", "last_ns", "done_ns", "input_tokens", "output_tokens", "planned_output_tokens", "coalesced"
    )  # fmt: skip
    rows = everyone.select(
        "sent_ns",
        "first_ns",
        "last_ns",
        began_ns=pl.coalesce("first_ns", "done_ns"),
        prompt=pl.col("input_tokens").fill_null(0).cast(pl.Float64),
        output=pl.coalesce("output_tokens", "planned_output_tokens").fill_null(0).cast(pl.Float64),
        coalesced=pl.col("coalesced").fill_null(False),
    ).filter(pl.col("sent_ns").is_not_null())
    decodes = rows.filter((pl.col("last_ns") > pl.col("first_ns")) & ~pl.col("coalesced"))
    origin_ns = rows["sent_ns"].min()
    if decodes.is_empty() or not isinstance(origin_ns, int):
        return None

    def seconds(frame: pl.DataFrame, name: str) -> Floats:
        found: Floats = (frame[name].drop_nulls() - origin_ns).to_numpy() / 1e9
        return found

    first_s, last_s = seconds(decodes, "first_ns"), seconds(decodes, "last_ns")
    rate = np.maximum(decodes["output"].to_numpy() - 1, 0.0) / (last_s - first_s)
    sums = np.stack([decodes["prompt"].to_numpy() + 1 - rate * first_s, rate])
    by_first, by_last = np.argsort(first_s, kind="stable"), np.argsort(last_s, kind="stable")
    return Course(
        origin_ns,
        np.sort(seconds(rows, "sent_ns")),
        np.sort(seconds(rows, "began_ns")),
        first_s[by_first],
        last_s[by_last],
        _running_sums(sums[:, by_first]),
        _running_sums(sums[:, by_last]),
    )


def _running_sums(values: Floats) -> Floats:
    found: Floats = np.concatenate([np.zeros((len(values), 1)), np.cumsum(values, axis=1)], axis=1)
    return found


class Gaps(NamedTuple):
    """Gaps between two tokens that came one by one, while no request was before its first token."""

    seconds: Floats
    decoding: Ints
    """Answers under way."""
    context: Floats
    """Mean of their contexts, tokens."""


def undisturbed(tables: Tables, found: Course) -> Gaps:
    """The gaps that are one decode step each, as far as can be told."""
    kept: list[tuple[Floats, Ints, Floats]] = []
    seen = 0
    for part in parts(tables):
        inner = not_first(part)
        start_s = (part.at_ns[:-1][inner[1:]] - found.origin_ns) / 1e9
        stop_s = (part.at_ns[1:][inner[1:]] - found.origin_ns) / 1e9
        middle_s = (start_s + stop_s) / 2
        alone = (part.tokens[inner] <= EVEN) & (found.before_first(start_s, stop_s) == 0)
        decoding = found.decoding(middle_s)
        alone &= decoding > 0
        context = found.context(middle_s[alone]) / decoding[alone]
        kept.append(((stop_s - start_s)[alone], decoding[alone], context))
        seen += len(inner)
        if seen > MOST_GAPS:
            break
    if not kept:
        return Gaps(np.empty(0), np.empty(0, np.int64), np.empty(0))
    return Gaps(*(np.concatenate(column) for column in zip(*kept, strict=True)))


class Prefills(NamedTuple):
    """Requests that were alone with the server until their first token came."""

    seconds: Floats
    prompt: Ints
    cached: Ints
    """Tokens of it that the server says it had; 0 where it says nothing."""


def alone(tables: Tables, found: Course) -> Prefills:
    """Those whose time to the first token is that of a prefill. Later turns count where the server tells what it had."""
    rows = tables.requests.select(
        "sent_ns",
        "first_ns",
        "input_tokens",
        cached=pl.col("usage_cached_tokens"),
        usable=(pl.col("opens") | pl.col("usage_cached_tokens").is_not_null()) & ~pl.col("coalesced").fill_null(False),
    ).filter(pl.Series(tables.succeeded))  # fmt: skip
    rows = rows.filter(
        pl.col("usable") & pl.col("first_ns").is_not_null() & pl.col("input_tokens").is_not_null()
    )
    sent_s = (rows["sent_ns"] - found.origin_ns).to_numpy() / 1e9
    first_s = (rows["first_ns"] - found.origin_ns).to_numpy() / 1e9
    inside = first_s - (first_s - sent_s) * 1e-6
    # It is itself before its first token, and began to decode at none of these moments.
    lonely = (found.before_first(sent_s, inside) == 1) & (found.decoding(sent_s) == 0)
    lonely &= found.decoding(inside) == 0
    chosen = rows.filter(pl.Series(lonely))
    return Prefills(
        (first_s - sent_s)[lonely],
        chosen["input_tokens"].to_numpy(),
        chosen["cached"].fill_null(0).to_numpy(),
    )
