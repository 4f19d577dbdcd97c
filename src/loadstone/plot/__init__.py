"""Figures of runs, from their folders: one file per figure.

A figure is a module of this package, or of the entry-point group `loadstone.plot`, with a `SUMMARY`, `MOST_RUNS` and
```
def chart(runs: Sequence[Run]) -> Drawing: ...
```
It chooses what is shown; size, colours, fonts and files are the same for all of them (`_look`, `_files`). Data are thinned
here, before Altair gets them, and the drawing says so. Needs the extra `loadstone[plot]`; only the command line imports
this package.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from loadstone import registry
from loadstone.errors import UsageError
from loadstone.plot._drawing import Drawing
from loadstone.plot._files import FORMATS, destination, formats, write
from loadstone.plot._look import Theme, spec
from loadstone.plot._runs import Run, read

__all__ = ["FORMATS", "Drawing", "Figure", "Run", "Theme", "draw", "figures", "summaries"]


class Figure(Protocol):
    """What a module of a figure has."""

    SUMMARY: str
    """What it shows, in a few words."""
    MOST_RUNS: int | None
    """How many runs it can show; None: any number."""

    def chart(self, runs: Sequence[Run]) -> Drawing:
        """The figure of these runs. Raises `UsageError` when they hold nothing that it could show."""
        ...


def summaries() -> dict[str, str]:
    """What every figure shows, by name."""
    return {name: registry.load("plot", name).SUMMARY for name in registry.names("plot")}


def figures(names: Sequence[str], runs: int) -> dict[str, Figure]:
    """The figures of these names; without any, all that can show so many runs.

    Raises `UsageError` for an unknown name, and for a figure that cannot show that many.
    """
    found: dict[str, Figure] = {name: registry.load("plot", name) for name in names or registry.names("plot")}
    fitting = {name: one for name, one in found.items() if one.MOST_RUNS is None or runs <= one.MOST_RUNS}
    crowded = [name for name in names if name not in fitting]
    if crowded:
        raise UsageError(
            f"--figure {crowded[0]}: shows {found[crowded[0]].MOST_RUNS} run at a time and {runs} folders are given; "
            "draw it for each of them by itself."
        )
    return fitting


def draw(
    folders: Sequence[Path],
    *,
    names: Sequence[str] = (),
    labels: Sequence[str] = (),
    title: str | None = None,
    theme: Theme = "light",
    output: Path | None = None,
    kinds: str | None = None,
) -> list[Path]:
    """Draws figures of the runs in these folders; the files written.

    `kinds` are formats separated by commas. Without `output` the files go to `plots/` in the first folder.
    Raises `UsageError` before anything is written when a folder, a figure or a format cannot be used.
    """
    chosen = figures(names, len(folders))
    endings = formats(kinds, output)
    paths = destination(folders[0], output, list(chosen), endings)
    runs = read(folders, labels)
    specs = {name: spec(figure.chart(runs), title, theme) for name, figure in chosen.items()}
    return [write(specs[name], ending, path) for (name, ending), path in paths.items()]
