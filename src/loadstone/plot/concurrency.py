"""Requests in flight over time, against the slots there were: was the concurrency what was asked for?"""

from __future__ import annotations

from collections.abc import Sequence

import altair as alt
import polars as pl

from loadstone.figures import brief
from loadstone.plot._asked import slots, together, unlike
from loadstone.plot._drawing import Drawing
from loadstone.plot._look import ASKED, by_run
from loadstone.plot._runs import Run
from loadstone.plot._series import level, moments, stretch_s

SUMMARY = "requests in flight over time, one line a run, with the slots there were"
MOST_RUNS = None


def chart(runs: Sequence[Run]) -> Drawing:
    """One line a run; dashed the slots, where there was a limit."""
    spans = [(moments(run.requests["sent_ns"]), moments(run.tables.left_ns)) for run in runs]
    over_s = max((width for span in spans if (width := stretch_s(*span))), default=None)
    lines = [
        level(*span, run.origin_ns, over_s).with_columns(run=pl.lit(run.label))
        for run, span in zip(runs, spans, strict=True)
    ]
    notes = [f"Means over {brief(over_s)} s."] if over_s else ["Every step is shown."]
    limits = unlike(curve for run in runs if (curve := slots(run)) is not None)
    layers = [_in_flight(pl.concat(lines), [run.label for run in runs])]
    if limits:
        layers.append(_slots(together(limits)))
        notes.append("Dashed: slots.")
    return Drawing("Concurrency", tuple(notes), alt.layer(*layers))


def _in_flight(lines: pl.DataFrame, labels: list[str]) -> alt.Chart:
    chart: alt.Chart = (
        alt.Chart(lines)
        .mark_line(interpolate="step-after", strokeWidth=1.5)
        .encode(
            x=alt.X("seconds:Q", title="seconds since the first dispatch", scale=alt.Scale(nice=False)),
            y=alt.Y(
                "level:Q",
                title="requests in flight",
                scale=alt.Scale(zero=True),
                axis=alt.Axis(tickMinStep=1),
            ),
            **by_run(labels),
        )
    )
    return chart


def _slots(curves: pl.DataFrame) -> alt.Chart:
    chart: alt.Chart = (
        alt.Chart(curves).mark_line(style=ASKED).encode(x="seconds:Q", y="level:Q", detail="curve:N")
    )
    return chart
