"""Token streams: what the arrival times of one answer's chunks say about its tokens.

Events that one read completed bear the same stamp and are merged into one **instant**. An instant brought k
tokens: by the server's continuous usage where it was told for every event of the answer, else the answer's
token total spread evenly over its events, else one token an event. Only successes are looked at.

Of several answers to one request (choices) each is a **stream** of its own, with its own instants: they lie side by
side in a part, in the order in which they began. Knows no metric.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from loadstone.metrics._choices import by_choice
from loadstone.stats import Floats

if TYPE_CHECKING:
    from loadstone.metrics._tables import Tables

Ints = NDArray[np.int64]


class Shape(NamedTuple):
    """The streams of all requests in numbers, one entry a request; 0 where there was none.

    Of several streams it is their sum, unless said otherwise.
    """

    streams: Ints
    """Choices that brought output."""
    events: Ints
    """Events that brought output tokens."""
    instants: Ints
    span_ns: Ints
    """From the first to the last instant."""
    tokens: Floats
    """Tokens that the stream brought: the sum of k over its instants."""
    first_tokens: Floats
    """k of the first instant."""
    shared: Ints
    """Instants of more than one event: reads that date only their last event exactly."""
    first_events: Ints
    """Events of the first instant; of the stream that began first."""
    second_gap_ns: Ints
    """From the first to the second instant, 0 where there is none; of the stream that began first."""
    told: NDArray[np.bool_]
    """Whether k is the server's continuous usage; the same for all streams of a request."""


SUMMED = Shape._fields.index("first_events")
"""Fields before this one are added up over the streams of a request."""


class Part(NamedTuple):
    """Instants of some streams, one after the other."""

    rows: Ints
    """Positions of their requests among all; those of one request stand together."""
    begins: Ints
    """Each stream's first instant; one more at the end."""
    at_ns: Ints
    tokens: Floats
    first_event: Ints
    """Each instant's first event; one more at the end."""
    told: NDArray[np.bool_]
    events: Ints
    frame: pl.DataFrame


def shape(tables: Tables) -> Shape:
    """The shape of every request's stream."""
    n = len(tables.requests)
    whole = Shape(*(np.zeros(n, kind) for kind in (int, int, int, int, float, float, int, int, int, bool)))
    for part in parts(tables):
        firsts = np.flatnonzero(np.diff(part.rows, prepend=-1))
        for place, (column, values) in enumerate(zip(whole, _shape(part), strict=True)):
            if len(firsts) < len(part.rows):
                values = np.add.reduceat(values, firsts) if place < SUMMED else values[firsts]
            column[part.rows[firsts]] = values
    return whole


def parts(tables: Tables, *more: str) -> Iterator[Part]:
    several = tables.several_choices
    choice = ("chunk_choice",) if several.any() else ()
    for position, frame in tables.parts("arrival_ns", "chunk_tokens", "output_tokens", *more, *choice):
        rows = np.arange(position, position + len(frame))
        there = tables.succeeded[rows] & (frame["arrival_ns"].list.len().fill_null(0) > 0).to_numpy()
        chosen = there & ~several[rows]
        if chosen.any():
            yield _part(rows[chosen], frame if chosen.all() else frame.filter(pl.Series(chosen)))
        chosen = there & several[rows]
        if chosen.any():
            streams = by_choice(frame.filter(pl.Series(chosen)))
            yield _part(rows[chosen][streams["answer"].to_numpy()], streams)


def _part(rows: Ints, frame: pl.DataFrame) -> Part:
    arrival_ns = flat(frame["arrival_ns"])
    events = frame["arrival_ns"].list.len().to_numpy().astype(np.int64)
    starts = np.cumsum(events) - events
    begins_instant = np.concatenate(([True], arrival_ns[1:] != arrival_ns[:-1]))
    begins_instant[starts] = True
    first_event = np.flatnonzero(begins_instant)
    told = _told(frame)
    tokens = np.add.reduceat(_tokens(frame, events, told), first_event)
    begins = np.append(np.searchsorted(first_event, starts), len(first_event))
    ends = np.append(first_event, len(arrival_ns))
    return Part(rows, begins, arrival_ns[first_event], tokens, ends, told, events, frame)


def _told(frame: pl.DataFrame) -> NDArray[np.bool_]:
    """Whether continuous usage gives at least one token for every event of an answer.

    A server that counts 0 for an event which brought text counts something else than tokens seen.
    """
    counts = pl.col("chunk_tokens")
    every = counts.list.drop_nulls().list.len() == pl.col("arrival_ns").list.len()
    told = (every & (counts.list.min() >= 1)).fill_null(False)
    return frame.select(told).to_series().to_numpy()


def _tokens(frame: pl.DataFrame, events: Ints, told: NDArray[np.bool_]) -> Floats:
    """Tokens of every event."""
    totals = frame["output_tokens"].cast(pl.Float64).fill_null(0.0).to_numpy()
    tokens = np.repeat(np.where(totals > 0, totals / events, 1.0), events)
    if told.any():
        tokens[np.repeat(told, events)] = flat(frame["chunk_tokens"].filter(pl.Series(told)))
    return tokens


def flat(lists: pl.Series) -> Ints:
    """All elements of the lists of a column that has no empty one."""
    return lists.explode(empty_as_null=False, keep_nulls=False).to_numpy()


def not_first(part: Part) -> NDArray[np.bool_]:
    """For every instant, whether it has one before it in its answer."""
    inner = np.ones(len(part.at_ns), np.bool_)
    inner[part.begins[:-1]] = False
    return inner


def _shape(part: Part) -> Shape:
    first = part.begins[:-1]
    instants = np.diff(part.begins)
    second = np.where(instants > 1, first + 1, first)
    return Shape(
        streams=np.ones_like(first),
        events=part.events,
        instants=instants,
        span_ns=part.at_ns[part.begins[1:] - 1] - part.at_ns[first],
        tokens=np.add.reduceat(part.tokens, first),
        first_tokens=part.tokens[first],
        shared=np.add.reduceat((np.diff(part.first_event) > 1).astype(np.int64), first),
        first_events=np.diff(part.first_event)[first],
        second_gap_ns=part.at_ns[second] - part.at_ns[first],
        told=part.told,
    )
