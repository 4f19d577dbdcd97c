"""How far the simulated engine is from published measurements of vLLM, with the efficiencies it assumes by default.

Everything is worked out on the virtual clock, so nothing depends on the machine. docs/roofline-validation.md has the tables.
"""

from __future__ import annotations

from bench.ground import Ground
from bench.published import page
from bench.published.compare import first, groups, rms
from bench.table import Item

REPEATS = 1
FITTED_BAR = 8.0
"""Percent."""


def measure(ground: Ground) -> list[Item]:
    print(page.text())
    return [
        Item(
            f"published: {group.name}, rms",
            "%",
            [rms(first(group.rows)) * 100],
            FITTED_BAR if group.name.startswith("fitted") else None,
            exact=True,
        )
        for group in groups()
    ]
