"""The figure of a capacity plan: the tails of one replica against its rate. No figure of a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import altair as alt
import polars as pl

from loadstone.plot._drawing import Chart, Drawing
from loadstone.plot._files import formats, write
from loadstone.plot._log_axis import labels
from loadstone.plot._look import ASKED, Theme, spec

WIDTH, HEIGHT = 800, 200
LEAST = 1.5
"""Of an axis, from its end to its start."""


class Tail(NamedTuple):
    """One panel: a statistic by the rate, and what it must stay below."""

    title: str
    values: Sequence[float | None]
    limit: float | None


def draw_capacity(
    rates: Sequence[float],
    tails: Sequence[Tail],
    marks: Mapping[str, float],
    notes: Sequence[str],
    output: Path,
    *,
    title: str,
    theme: Theme = "light",
) -> Path:
    """Writes the figure in the format that the path ends with. UsageError: it cannot be written."""
    panels = [_panel(rates, tail, list(marks.values())) for tail in tails]
    drawing = Drawing(title, tuple(notes), alt.vconcat(*panels).resolve_scale(x="shared"))
    return write(spec(drawing, None, theme), formats(None, output)[0], output)


def _panel(rates: Sequence[float], tail: Tail, marks: Sequence[float]) -> Chart:
    rows = pl.DataFrame(
        {"rate": rates, "value": tail.values}, schema={"rate": pl.Float64, "value": pl.Float64}
    )
    rows = rows.drop_nulls()
    x = alt.X("rate:Q", title="requests a second of one replica", scale=alt.Scale(zero=True))
    limits = [tail.limit] if tail.limit else []
    ends = [*rows["value"].to_list(), *limits] or [1.0]
    low, high = min(ends), max(*ends, LEAST * min(ends))
    axis = alt.Axis(values=labels(low, high, limits), labelOverlap=False, format=",.3~r")
    scale = alt.Scale(type="log", nice=False, domain=[low, high])
    y = alt.Y("value:Q", title=tail.title, scale=scale, axis=axis)
    layers = [alt.Chart(rows).mark_line(point=True, strokeWidth=2.5).encode(x=x, y=y)]
    if tail.limit is not None:
        layers.append(alt.Chart(pl.DataFrame({"value": [tail.limit]})).mark_rule(style=ASKED).encode(y=y))
    layers += [
        alt.Chart(pl.DataFrame({"rate": [mark]})).mark_rule(strokeDash=[2, 3]).encode(x=x) for mark in marks
    ]
    return alt.layer(*layers).properties(width=WIDTH, height=HEIGHT)
