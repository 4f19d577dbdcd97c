"""The figure of a roofline: latency and throughput against the batch, with the marks of its limits. No figure of a run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import altair as alt
import polars as pl

from loadstone.figures import brief
from loadstone.plot._drawing import Chart, Drawing
from loadstone.plot._files import formats, write
from loadstone.plot._log_axis import labels
from loadstone.plot._look import ASKED, Theme, spec
from loadstone.roofline.curve import TPOT, Curve

WIDTH, HEIGHT = 800, 240
LEAST = 1.5
"""Of an axis, from its end to its start."""


def draw_curve(
    curve: Curve, notes: Sequence[str], output: Path, *, title: str | None = None, theme: Theme = "light"
) -> Path:
    """Writes the figure in the format that the path ends with; `notes` say what it rests on. UsageError: it cannot be written."""
    return write(spec(drawing(curve, notes), title, theme), formats(None, output)[0], output)


def drawing(curve: Curve, notes: Sequence[str]) -> Drawing:
    """Two panels with one axis of batches; thin the batches that do not fit."""
    rows = pl.DataFrame(
        {
            "batch": [row.batch for row in curve.drawn],
            "itl": [1e3 * row.step_s for row in curve.drawn],
            "tokens": [row.tokens_s for row in curve.drawn],
            "fits": [row.fits for row in curve.drawn],
        }
    )
    what = "the KV cache holds" if curve.kv_batch <= curve.max_num_seqs else "--max-num-seqs lets run"
    limits = [1e3 * one.limit_s for one in curve.objectives if one.name == TPOT]
    lines = (
        f"Dashed: B_sat {brief(curve.b_sat)}, above which products take longer than streaming the weights"
        f"{', and the objective' if limits else ''}. Dotted: the {curve.largest:,} sequences that {what}; thin beyond."
    )
    panels = [_panel(rows, curve, "itl", "ITL, ms", limits), _panel(rows, curve, "tokens", "output tokens/s")]
    chart = alt.vconcat(*panels).resolve_scale(x="shared")
    return Drawing("Roofline of decode, computed", (*notes, lines), chart)


def _panel(rows: pl.DataFrame, curve: Curve, column: str, title: str, limits: Sequence[float] = ()) -> Chart:
    x = alt.X("batch:Q", title="sequences in a step", scale=alt.Scale(type="log", base=2, nice=False))
    low, high = rows[column].to_numpy().min(), rows[column].to_numpy().max()
    domain = [float(low), float(max(high, low * LEAST))]
    axis = alt.Axis(values=labels(domain[0], domain[1]), labelOverlap=False, format=",.3~r")
    y = alt.Y(f"{column}:Q", title=title, scale=alt.Scale(type="log", domain=domain), axis=axis)
    running = rows.filter(pl.col("batch") <= curve.largest)
    layers = [
        alt.Chart(rows).mark_line(strokeWidth=1, opacity=0.6).encode(x=x, y=y),
        alt.Chart(running).mark_line(strokeWidth=2.5).encode(x=x, y=y),
    ]
    if rows["batch"][0] <= curve.b_sat <= rows["batch"][-1]:
        mark = pl.DataFrame({"batch": [curve.b_sat]})
        layers.append(alt.Chart(mark).mark_rule(style=ASKED).encode(x=x))
    mark = pl.DataFrame({"batch": [curve.largest]})
    layers.append(alt.Chart(mark).mark_rule(strokeDash=[2, 3]).encode(x=x))
    for limit in limits:
        if domain[0] <= limit <= domain[1]:
            rule = pl.DataFrame({column: [limit]})
            layers.append(alt.Chart(rule).mark_rule(style=ASKED).encode(y=y))
    return alt.layer(*layers).properties(width=WIDTH, height=HEIGHT)
