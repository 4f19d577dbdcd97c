"""Request latency over the time at which requests were due, from sent and from due: does the server fall behind?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import altair as alt
import numpy as np
import polars as pl

from loadstone.errors import UsageError
from loadstone.figures import counted
from loadstone.metrics import per_request
from loadstone.plot._drawing import WIDTH, Drawing
from loadstone.plot._look import by_run
from loadstone.plot._runs import Run
from loadstone.plot._series import running_median, thinned

SUMMARY = "request latency over due time, from sent and from due, with a running median"
MOST_RUNS = None

CLOCKS = {"from sent": "request_latency", "from due": "request_latency_from_due"}
"""The metrics, by what a panel says of them."""
PANEL_HEIGHT = 253
MARGIN = 94
"""Of the width, for the axis and what is around."""
BETWEEN = 18
LONG_MS = 10_000.0


class Panel(NamedTuple):
    """What one panel shows: points, and the running median of them all."""

    since: str
    points: pl.DataFrame
    medians: pl.DataFrame


def chart(runs: Sequence[Run]) -> Drawing:
    """A panel for each start of the clock that the runs have; a closed loop has only `sent`."""
    found = {since: [_latencies(run, metric) for run in runs] for since, metric in CLOCKS.items()}
    panels = [_panel(since, latencies) for since, latencies in found.items() if any(map(len, latencies))]
    if not panels:
        raise UsageError(
            "latency-over-time: no answer of these runs is whole, so there is no latency to draw."
        )
    width = (WIDTH - MARGIN - BETWEEN * (len(panels) - 1)) // len(panels)
    labels = [run.label for run in runs]
    drawn = [_drawn(panel, labels, width, first=panel is panels[0], unit=_unit(panels)) for panel in panels]
    notes = _notes(runs, found["from sent"], panels)
    return Drawing("Request latency", notes, alt.hconcat(*drawn, spacing=BETWEEN).resolve_scale(y="shared"))


def _latencies(run: Run, metric: str) -> pl.DataFrame:
    """`seconds` at which each successful request was due, and its `latency` in ms, in that order."""
    latency_ms = per_request(metric, run.tables)
    kept = run.requests.select(
        seconds=(pl.col("due_ns") - run.origin_ns) / 1e9,
        latency=pl.Series(latency_ms),
        run=pl.lit(run.label),
    ).filter(pl.Series(np.isfinite(latency_ms) & run.tables.succeeded))
    return kept.drop_nulls().sort("seconds")


def _panel(since: str, latencies: Sequence[pl.DataFrame]) -> Panel:
    return Panel(
        since,
        pl.concat([thinned(one, "latency") for one in latencies]),
        pl.concat([running_median(one, "latency") for one in latencies]),
    )


def _unit(panels: Sequence[Panel]) -> tuple[str, float]:
    """Seconds where the greatest latency is long, else milliseconds; and how many ms it has."""
    greatest_ms = max(float(panel.points["latency"].to_numpy().max()) for panel in panels)
    return ("s", 1e3) if greatest_ms >= LONG_MS else ("ms", 1.0)


def _drawn(
    panel: Panel, labels: list[str], width: int, *, first: bool, unit: tuple[str, float]
) -> alt.LayerChart | alt.FacetChart:
    name, ms = unit
    x = alt.X("seconds:Q", title="due, seconds since the first dispatch", scale=alt.Scale(nice=False))
    y = alt.Y(
        "latency:Q",
        title=f"latency {panel.since}, {name}",
        scale=alt.Scale(zero=True),
        axis=alt.Axis(labels=first),
    )
    points, lines = (
        alt.Chart(frame.with_columns(pl.col("latency") / ms)) for frame in (panel.points, panel.medians)
    )
    return alt.layer(
        points.mark_circle(size=14, opacity=0.35).encode(x=x, y=y, color=by_run(labels)["color"]),
        lines.mark_line().encode(x=x, y=y, **by_run(labels)),
    ).properties(width=width, height=PANEL_HEIGHT)


def _notes(
    runs: Sequence[Run], latencies: Sequence[pl.DataFrame], panels: Sequence[Panel]
) -> tuple[str, ...]:
    """What the points are, and which requests have none."""
    shown, answered = len(panels[0].points), sum(map(len, latencies))
    due = sum(len(run.requests) for run in runs)
    few = f"{shown:,} of {answered:,} shown, the slowest among them" if shown < answered else "all shown"
    lost = (
        f" Without the {counted(due - answered, 'request')} that got no whole answer."
        if due > answered
        else ""
    )
    return (f"Points: successful requests, {few}; line: running median of all.{lost}",)
