"""Where the tokens of the answers fell in time: one pass over the token streams, into grids of bounded size.

Only successes bring tokens here, as in every throughput. Knows no metric.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import polars as pl

from loadstone.clock import SECOND_NS
from loadstone.metrics._streams import Part, not_first, parts
from loadstone.metrics._sweep import Grid, Ints, Window
from loadstone.stats import Floats

if TYPE_CHECKING:
    from loadstone.metrics._tables import Tables

MOST_INSTANTS = 1 << 20
"""Instants of tokens that are sorted in memory, 16 bytes each; above, they are counted in steps."""
FINE_NS = 1_000_000
"""The least of these steps; a second is a whole number of them."""
MOST_FINE = 1 << 21
_ROWS = 1 << 16
"""Requests looked at together, so that temporary arrays stay small."""


class Peak(NamedTuple):
    """The most tokens that came within one second, whenever it began."""

    tokens: float
    at_most: float
    """What it may be instead, where tokens were counted in steps; else the same."""
    step_ns: int
    """Of these steps; 0: the moment of every token was looked at."""


class Flow(NamedTuple):
    """The tokens of one stretch of time, in the steps of a grid that begins with its window."""

    window_ns: Window
    lasts_ns: Floats
    """How long each step is; the last one may be shorter."""
    prompts: Floats
    """Tokens of prompts, each prompt's spread evenly over the time from `sent` to its first token."""
    first: Floats
    """Tokens of the first instants of answers, at these."""
    later: Floats
    """Tokens of all other instants, each spread evenly over the gap before it."""
    held: Floats
    """Tokens under way x ns: a prompt from `sent` to the end of its answer, a token of it from its arrival to then."""
    present: Floats
    """Requests from `sent` to their last token x ns."""
    decoding: Floats
    """Answers from their first to their last token x ns."""
    peak: Peak | None
    """None where the window is shorter than a second, or no token came as a stream."""


def flow(tables: Tables) -> Flow | None:
    """The flow of one stretch; None where its window has no length."""
    window_ns = tables.window_ns
    if window_ns is None or window_ns[1] <= window_ns[0]:
        return None
    lasts_ns = window_ns[1] - window_ns[0]
    prompts, first, later, held, present, decoding = (Grid(lasts_ns) for _ in range(6))
    for sent_ns, first_ns, last_ns, tokens in _requests(tables, window_ns[0]):
        prompts.add(sent_ns, first_ns, tokens)
        held.add(sent_ns, last_ns, tokens * (last_ns - sent_ns))
        present.add(sent_ns, last_ns, (last_ns - sent_ns).astype(float))
        decoding.add(first_ns, last_ns, (last_ns - first_ns).astype(float))
    counter = _Counter(lasts_ns, int(tables.shape.instants.sum()))
    ends_ns = tables.requests["last_ns"].fill_null(window_ns[0]).to_numpy()
    for part in parts(tables):
        at_ns = part.at_ns - window_ns[0]
        inner = not_first(part)
        first.at(at_ns[~inner], part.tokens[~inner])
        later.add(at_ns[:-1][inner[1:]], at_ns[inner], part.tokens[inner])
        left_ns = np.repeat(ends_ns[part.rows] - window_ns[0], np.diff(part.begins))
        held.add(at_ns, left_ns, part.tokens * (left_ns - at_ns))
        counter.add(at_ns, part)
    return Flow(
        window_ns=window_ns,
        lasts_ns=prompts.lasts_ns(lasts_ns),
        prompts=prompts.sums,
        first=first.sums,
        later=later.sums,
        held=held.sums,
        present=present.sums,
        decoding=decoding.sums,
        peak=counter.peak(),
    )


def _requests(tables: Tables, start_ns: int) -> Iterator[tuple[Ints, Ints, Ints, Floats]]:
    """`sent`, first and last token in ns after the start, and the prompt's tokens, of the successes that have them.

    An unknown prompt has no tokens.
    """
    moments = ("sent_ns", "first_ns", "last_ns")
    rows = tables.requests.select(*moments, "input_tokens")
    there = rows.filter(pl.Series(tables.succeeded)).drop_nulls(moments)
    for rows in there.iter_slices(_ROWS):
        sent_ns, first_ns, last_ns = (rows[name].to_numpy() - start_ns for name in moments)
        yield sent_ns, first_ns, last_ns, rows["input_tokens"].fill_null(0).to_numpy().astype(float)


class _Counter:
    """Counts tokens for the peak: every instant while there are few, else in fine steps."""

    def __init__(self, lasts_ns: int, instants: int) -> None:
        self._short = lasts_ns < SECOND_NS
        self._instants: list[tuple[Ints, Floats]] = []
        exact = instants <= MOST_INSTANTS or self._short
        self._grid = None if exact else Grid(lasts_ns, FINE_NS, MOST_FINE)

    def add(self, at_ns: Ints, part: Part) -> None:
        if self._short:
            return
        if self._grid is None:
            self._instants.append((at_ns, part.tokens))
        else:
            self._grid.at(at_ns, part.tokens)

    def peak(self) -> Peak | None:
        if self._short or not (self._instants or self._grid):
            return None
        if self._grid is None:
            at_ns, tokens = (np.concatenate(column) for column in zip(*self._instants, strict=True))
            return _exact(at_ns, tokens)
        return _in_steps(self._grid.sums, self._grid.step_ns)


def _exact(at_ns: Ints, tokens: Floats) -> Peak:
    """A window that holds most may be moved until it ends with a token: each of those is looked at."""
    order = np.argsort(at_ns, kind="stable")
    at_ns = at_ns[order]
    sums = np.concatenate(([0.0], np.cumsum(tokens[order])))
    most = float((sums[1:] - sums[np.searchsorted(at_ns, at_ns - SECOND_NS, side="right")]).max())
    return Peak(most, most, 0)


def _in_steps(sums: Floats, step_ns: int) -> Peak:
    """The windows of whole steps; any other one lies within one step more."""
    steps = SECOND_NS // step_ns
    so_far = np.concatenate(([0.0], np.cumsum(sums)))
    return Peak(
        float((so_far[steps:] - so_far[:-steps]).max(initial=0.0)),
        float((so_far[steps + 1 :] - so_far[: -steps - 1]).max(initial=0.0)),
        step_ns,
    )


def arrived(tables: Tables, edges_ns: Ints) -> Floats:
    """Output tokens of successes that arrived between each edge and the next, the first moment of each included, and the
    last of all.

    A chunk's tokens count at its arrival; of an answer that came as no stream all count at its end.
    """
    found = np.zeros(len(edges_ns) + 1)

    def add(at_ns: Ints, tokens: Floats) -> None:
        place = np.searchsorted(edges_ns, at_ns, side="right") - (at_ns == edges_ns[-1])
        np.add.at(found, place, tokens)

    for part in parts(tables):
        add(part.at_ns, part.tokens)
    whole = tables.requests.select("done_ns", "output_tokens")
    whole = whole.filter(pl.Series(tables.succeeded & (tables.shape.instants == 0))).drop_nulls()
    add(whole["done_ns"].to_numpy(), whole["output_tokens"].to_numpy().astype(float))
    return found[1:-1]
