"""Responses that hold several answers (choices), interleaved as they came: taken apart into one stream each."""

from __future__ import annotations

import polars as pl

LISTS = ("arrival_ns", "read_ns", "chunk_tokens")


def by_choice(frame: pl.DataFrame) -> pl.DataFrame:
    """The list columns of responses, one row a choice that brought output: of each response in the order of beginning.

    `answer` is the response's row in `frame`. `output_tokens` is the share of its total that falls to the choice when
    it is spread evenly over all events. Continuous usage counts up over all choices together, so that what an event
    added belongs to the choice of that event; where it was not told for every event it is left out. A response whose
    choices were not told counts as one.
    """
    events = pl.col("arrival_ns").list.len()
    told = pl.col("chunk_tokens").list.len() == events
    known = pl.col("chunk_choice").list.len() == events
    whole = frame.with_row_index("answer").with_columns(
        chunk_tokens=pl.when(told).then("chunk_tokens").otherwise(_nulls(events)),
        chunk_choice=pl.when(known).then("chunk_choice").otherwise(_nulls(events)),
        output_tokens=pl.col("output_tokens") / events,
    )
    lists = [name for name in LISTS if name in frame.columns]
    single = whole.explode("chunk_choice", *lists)
    apart = single.group_by("answer", "chunk_choice", maintain_order=True)
    return apart.agg(*lists, output_tokens=pl.col("output_tokens").sum())


def _nulls(length: pl.Expr) -> pl.Expr:
    """Lists of nothing but nulls, as long as they are told to be."""
    return pl.lit(None, pl.Int32).repeat_by(length)
