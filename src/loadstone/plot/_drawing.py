"""What a figure gives: its chart, and the words around it."""

from __future__ import annotations

from typing import NamedTuple

import altair as alt

WIDTH, HEIGHT = 800, 400
"""Of a whole figure, px; a PNG has twice as many."""

Chart = alt.Chart | alt.LayerChart | alt.FacetChart | alt.HConcatChart | alt.VConcatChart


class Drawing(NamedTuple):
    """A figure before it is dressed. `notes` stand below the title: what was left out, what a line means."""

    title: str
    notes: tuple[str, ...]
    chart: Chart
