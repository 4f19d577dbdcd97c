"""Requests sent per second, over the seconds since the first dispatch: was the shape of the load what was asked for?"""

from __future__ import annotations

from collections.abc import Sequence

import altair as alt
import polars as pl

from loadstone.figures import brief
from loadstone.plot._asked import rate, together, unlike
from loadstone.plot._drawing import Drawing
from loadstone.plot._look import ASKED, by_run
from loadstone.plot._runs import Run
from loadstone.plot._series import bin_s, edges, moments, per_second

SUMMARY = "requests sent per second over time, one line a run, with the rate asked for"
MOST_RUNS = None


def chart(runs: Sequence[Run]) -> Drawing:
    """One line a run; dashed the rate asked for, where one was."""
    sent = [moments(run.requests["sent_ns"]) for run in runs]
    width_s = max(bin_s((times[-1] - times[0]) / 1e9, len(times)) for times in sent)
    lines = [
        per_second(
            times, edges(int(times[0]), int(times[-1]), len(times), width_s), run.origin_ns
        ).with_columns(run=pl.lit(run.label))
        for run, times in zip(runs, sent, strict=True)
    ]
    asked = unlike(curve for run in runs if (curve := rate(run)) is not None)
    layers = [_sent(pl.concat(lines), [run.label for run in runs])]
    notes = [f"Counted in bins of {brief(width_s)} s."]
    if asked:
        layers.append(_asked(together(asked)))
        notes.append("Dashed: the rate asked for.")
    return Drawing("Request rate", tuple(notes), alt.layer(*layers))


def _sent(lines: pl.DataFrame, labels: list[str]) -> alt.Chart:
    chart: alt.Chart = (
        alt.Chart(lines)
        .mark_line(interpolate="step-after")
        .encode(
            x=alt.X("seconds:Q", title="seconds since the first dispatch", scale=alt.Scale(nice=False)),
            y=alt.Y("rate:Q", title="requests sent per second", scale=alt.Scale(zero=True)),
            **by_run(labels),
        )
    )
    return chart


def _asked(curves: pl.DataFrame) -> alt.Chart:
    """Thin and dashed over the lines, in no run's colour: equal ones lie on each other."""
    chart: alt.Chart = (
        alt.Chart(curves).mark_line(style=ASKED).encode(x="seconds:Q", y="rate:Q", detail="curve:N")
    )
    return chart
