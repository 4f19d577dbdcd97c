"""The figure of a roofline: latency and throughput against the batch, with the marks of its limits. No figure of a run."""

from __future__ import annotations

from pathlib import Path

import altair as alt
import polars as pl

from loadstone.figures import brief
from loadstone.plot._drawing import Chart, Drawing
from loadstone.plot._files import formats, write
from loadstone.plot._look import ASKED, Theme, spec
from loadstone.roofline.curve import Curve

WIDTH, HEIGHT = 800, 240
LEAST = 1.5
"""Of an axis, from its end to its start."""


def draw_curve(curve: Curve, output: Path, *, title: str | None = None, theme: Theme = "light") -> Path:
    """Writes the figure in the format that the path ends with. UsageError: it cannot be written."""
    return write(spec(drawing(curve), title, theme), formats(None, output)[0], output)


def drawing(curve: Curve) -> Drawing:
    """Two panels with one axis of batches; thin the batches that do not fit."""
    rows = pl.DataFrame(
        {
            "batch": [row.batch for row in curve.drawn],
            "itl": [1e3 * row.step_s for row in curve.drawn],
            "tokens": [row.tokens_s for row in curve.drawn],
            "fits": [row.fits for row in curve.drawn],
        }
    )
    notes = (
        f"{curve.words}, context {curve.context:,} tokens.",
        f"Dashed: B_sat {brief(curve.b_sat)}, above which products take longer than streaming the weights.",
        f"Thin: more than the {curve.largest:,} sequences that can run.",
    )
    panels = [_panel(rows, curve, "itl", "ITL, ms"), _panel(rows, curve, "tokens", "output tokens/s")]
    return Drawing("Roofline of decode", notes, alt.vconcat(*panels).resolve_scale(x="shared"))


def _panel(rows: pl.DataFrame, curve: Curve, column: str, title: str) -> Chart:
    x = alt.X("batch:Q", title="sequences in a step", scale=alt.Scale(type="log", base=2, nice=False))
    low, high = rows[column].to_numpy().min(), rows[column].to_numpy().max()
    domain = [float(low), float(max(high, low * LEAST))]
    y = alt.Y(f"{column}:Q", title=title, scale=alt.Scale(type="log", domain=domain))
    running = rows.filter(pl.col("batch") <= curve.largest)
    layers = [
        alt.Chart(rows).mark_line(strokeWidth=1, opacity=0.6).encode(x=x, y=y),
        alt.Chart(running).mark_line(strokeWidth=2.5).encode(x=x, y=y),
    ]
    if rows["batch"][0] <= curve.b_sat <= rows["batch"][-1]:
        mark = pl.DataFrame({"batch": [curve.b_sat]})
        layers.append(alt.Chart(mark).mark_rule(style=ASKED).encode(x=x))
    return alt.layer(*layers).properties(width=WIDTH, height=HEIGHT)
