"""What one run offered, sent and got back, and what queued at the client: did the load keep its shape?"""

from __future__ import annotations

from collections.abc import Sequence

import altair as alt
import numpy as np
import polars as pl

from loadstone.figures import brief, counted
from loadstone.plot._drawing import WIDTH, Drawing
from loadstone.plot._runs import Run
from loadstone.plot._series import Ints, bin_s, edges, level, moments, per_second, stretch_s
from loadstone.summary.queue import waited

SUMMARY = "one run's offered, sent and completed rates, and its queue, over time"
MOST_RUNS = 1

KINDS = ["offered", "sent", "completed"]
BAND_WIDTH, BAND_OPACITY = 7, 0.4
"""Of the line of the offered rate, px and share."""
LINE_WIDTH = 3
"""Of the others in the legend, px."""
MARGIN = 88
"""Of the width, for the axis and what is around."""
HEIGHTS = 150, 84
SECONDS = "seconds since the first dispatch"


def chart(runs: Sequence[Run]) -> Drawing:
    """Rates above, the queue below, over the same seconds."""
    run = runs[0]
    rates, width_s = _rates(run)
    came_ns, went_ns = _queued(run)
    over_s = stretch_s(came_ns, went_ns)
    queue = level(came_ns, went_ns, run.origin_ns, over_s)
    span = [
        min(frame["seconds"].to_numpy().min() for frame in (rates, queue)),
        rates["seconds"].to_numpy().max(),
    ]
    x = alt.X("seconds:Q", scale=alt.Scale(domain=span, nice=False))
    above = _drawn_rates(rates, x).properties(width=WIDTH - MARGIN, height=HEIGHTS[0])
    below = _drawn_queue(queue, x).properties(width=WIDTH - MARGIN, height=HEIGHTS[1])
    notes = f"{run.label}. Counted in bins of {brief(width_s)} s.{_left_over(run)}"
    if over_s:
        notes += f" Queue: means over {brief(over_s)} s."
    return Drawing("Offered, sent, queued", (notes,), alt.vconcat(above, below, spacing=12))


def _rates(run: Run) -> tuple[pl.DataFrame, float]:
    """`seconds`, `rate` and `kind`, in bins of one width, and that in seconds."""
    times = {
        "offered": moments(run.requests["due_ns"]),
        "sent": moments(run.requests["sent_ns"]),
        "completed": moments(run.requests["done_ns"].filter(pl.Series(run.tables.succeeded))),
    }
    times = {kind: found for kind, found in times.items() if len(found)}
    offered = times["offered"]
    width_s = bin_s((int(offered[-1]) - int(offered[0])) / 1e9, len(offered))
    lines = [
        per_second(
            found, edges(int(found[0]), int(found[-1]), len(found), width_s), run.origin_ns
        ).with_columns(kind=pl.lit(kind))
        for kind, found in times.items()
    ]
    return pl.concat(lines), width_s


def _queued(run: Run) -> tuple[Ints, Ints]:
    """When requests came to the queue, and when they left it, each in order; in a closed loop none ever waits."""
    waiting = waited(run.tables)
    if waiting is None:
        origin_ns = np.array([run.origin_ns])
        return origin_ns, origin_ns
    came_ns, went_ns = waiting
    return np.sort(came_ns), np.sort(went_ns)


def _left_over(run: Run) -> str:
    unsent = int(run.tables.unsent.sum())
    return f" {counted(unsent, 'request')} never sent." if unsent else ""


def _drawn_rates(rates: pl.DataFrame, x: alt.X) -> alt.LayerChart | alt.FacetChart:
    """Offered as a broad band behind the lines, and so in the legend: where all goes well they lie on it."""
    base = alt.Chart(rates).encode(
        x=x.title(None).axis(labels=False, ticks=False),
        y=alt.Y("rate:Q", title="requests per second", scale=alt.Scale(zero=True)),
        color=alt.Color("kind:N", title=None, scale=alt.Scale(domain=KINDS), legend=_legend()),
    )
    offered = alt.datum.kind == KINDS[0]
    band = base.mark_line(interpolate="step-after", strokeWidth=BAND_WIDTH, opacity=BAND_OPACITY)
    lines = base.mark_line(interpolate="step-after")
    return alt.layer(band.transform_filter(offered), lines.transform_filter(~offered))


def _legend() -> alt.Legend:
    offered = f"datum.label == '{KINDS[0]}'"
    return alt.Legend(
        symbolStrokeWidth=alt.ExprRef(f"{offered} ? {BAND_WIDTH} : {LINE_WIDTH}"),
        symbolOpacity=alt.ExprRef(f"{offered} ? {BAND_OPACITY} : 1"),
    )


def _drawn_queue(queue: pl.DataFrame, x: alt.X) -> alt.Chart:
    """At least one high, so that the client's own lag does not look like a queue."""
    most = max(1.0, float(queue["level"].to_numpy().max()))
    chart: alt.Chart = (
        alt.Chart(queue)
        .mark_area(interpolate="step-after", opacity=0.6)
        .encode(
            x=x.title(SECONDS),
            y=alt.Y(
                "level:Q",
                title="due, not sent",
                scale=alt.Scale(domain=[0, most]),
                axis=alt.Axis(tickCount=4, tickMinStep=1),
            ),
        )
    )
    return chart
