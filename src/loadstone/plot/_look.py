"""How every figure looks: size, fonts, and colours that the colour-blind tell apart; from a drawing to Vega-Lite."""

from __future__ import annotations

from typing import Any, Literal

import altair as alt

from loadstone.plot._drawing import HEIGHT, WIDTH, Drawing
from loadstone.terminal import fit, printable, wrap

Theme = Literal["light", "dark"]

PALETTES = {
    "light": ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#5B5B5B"),
    "dark": ("#56B4E9", "#E69F00", "#2BC4A0", "#E59ACB", "#F0E442", "#F2763F", "#B8B8B8"),
}
"""After Okabe and Ito (2008), for a ground that is light, and brighter for a dark one."""
COLORS = len(PALETTES["light"])
DASHES = ([1, 0], [8, 3], [3, 3], [10, 3, 2, 3])
"""One for every time that the colours have been used up."""
INK = {"light": "#222222", "dark": "#E6E6E6"}
FAINT = {"light": "#666666", "dark": "#A6A6A6"}
GRID = {"light": "#E4E4E4", "dark": "#3A3D42"}
GROUND = {"light": "#FFFFFF", "dark": "#1B1D21"}
FONT = "sans-serif"
ASKED = "asked"
"""The style of lines of what was asked for: thinner than those of what was done, which they lie on where all went well."""
MOST_TITLE, MOST_NOTE = 80, 120
"""Characters of a title, and of a line below it, that fit the width."""
LEGEND = 120
"""The same of a row of the legend."""


def by_run(labels: list[str]) -> dict[str, alt.Color | alt.StrokeDash]:
    """The channels that tell runs apart: colours, and dashes where there are more runs than colours."""
    scale = alt.Scale(domain=labels)
    legend = alt.Legend(columns=max(1, min(4, LEGEND // (max(map(len, labels)) + 5))))
    channels: dict[str, alt.Color | alt.StrokeDash] = {
        "color": alt.Color("run:N", title=None, scale=scale, legend=legend)
    }
    if len(labels) > COLORS:
        dashes = [DASHES[position // COLORS % len(DASHES)] for position in range(len(labels))]
        channels["strokeDash"] = alt.StrokeDash(
            "run:N", title=None, scale=alt.Scale(domain=labels, range=dashes), legend=legend
        )
    return channels


def spec(drawing: Drawing, title: str | None, theme: Theme) -> dict[str, Any]:
    """The drawing as Vega-Lite. `title` replaces its own; like every text it is made safe to show."""
    chart = drawing.chart
    if not isinstance(chart, alt.HConcatChart | alt.VConcatChart):
        chart = chart.properties(width=WIDTH, height=HEIGHT)
    with alt.data_transformers.enable("default", max_rows=None):
        found: dict[str, Any] = chart.to_dict()
    if "hconcat" not in found and "vconcat" not in found:
        found["autosize"] = {"type": "fit", "contains": "padding"}
    heading = fit(printable(drawing.title if title is None else title), MOST_TITLE)
    return found | {
        "title": {"text": heading, "subtitle": wrap(" ".join(drawing.notes), MOST_NOTE)},
        "config": _config(theme),
    }


def _config(theme: Theme) -> dict[str, Any]:
    ink, faint, grid = INK[theme], FAINT[theme], GRID[theme]
    return {
        "background": GROUND[theme],
        "padding": 14,
        "font": FONT,
        "view": {"stroke": None},
        "mark": {"color": PALETTES[theme][0]},
        "range": {"category": list(PALETTES[theme])},
        "title": {
            "anchor": "start", "frame": "group", "fontSize": 16, "fontWeight": 600, "color": ink, "offset": 12,
            "subtitleFontSize": 12, "subtitleColor": faint, "subtitlePadding": 5, "subtitleLineHeight": 15,
        },
        "axis": {
            "labelFontSize": 12, "titleFontSize": 12, "titleFontWeight": 400, "labelColor": faint,
            "titleColor": ink, "gridColor": grid, "domainColor": faint, "tickColor": faint, "titlePadding": 8,
            "labelFlush": False,
        },
        "axisX": {"grid": False, "tickCount": 12},
        "axisY": {"domain": False, "ticks": False},
        "legend": {
            "orient": "top", "direction": "horizontal", "labelFontSize": 12, "labelColor": ink, "labelLimit": 360,
            "symbolType": "stroke", "symbolOpacity": 1, "symbolStrokeWidth": 3, "symbolSize": 160, "columnPadding": 18,
        },
        "line": {"strokeJoin": "round"},
        "rule": {"color": faint},
        "style": {ASKED: {"color": ink, "strokeWidth": 1, "strokeDash": [6, 5]}},
    }  # fmt: skip
