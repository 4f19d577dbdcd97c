"""`loadstone explain METRIC`: what a number means, by its own definition, and why another tool's is a different one.

The words are those of the metric's docstring, as on docs/metrics.md. What is said there of all metrics of its chapter stands
at the end, in a few lines.
"""

from __future__ import annotations

import inspect
import re
import shutil
import sys
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

import click

from loadstone.cli.sheet import SETTINGS, Given, verbose
from loadstone.errors import UsageError, did_you_mean
from loadstone.terminal import fit, wrap

if TYPE_CHECKING:
    from loadstone.metrics import Metric

INDENT = "  "
SAME = "The same formula."
WIDE = 100
"""Cells of a line of text, at most; longer ones are hard to read."""
MOST_REMARKS = 6
"""Lines of what holds for all metrics of a chapter; where there is more, the page has it."""


def _words() -> Sequence[str]:
    from loadstone.metrics import _namesakes, names

    return _namesakes.words(names())


@click.command(context_settings=SETTINGS)
@click.argument("metrics", nargs=-1, metavar="[METRIC]...", type=Given(_words))
@verbose
def explain(metrics: tuple[str, ...], verbose: bool) -> int:
    """What METRIC means: formula, unit, when it is null, and how other tools compute theirs.

    Other tools' names are understood too, as in their files and on their screens (tpot, e2el, 'P99 ITL (ms)'). Without METRIC:
    all there are.
    """
    columns = shutil.get_terminal_size((0, 0)).columns  # 0: it goes into a file
    pages = (_page(word, min(columns or WIDE, WIDE)) for word in metrics)
    click.echo("\n\n\n".join(pages) if metrics else _listing(columns or sys.maxsize))
    return 0


def _page(word: str, width: int) -> str:
    """Everything about the metric that a word means. UsageError: it means none."""
    from loadstone.metrics import _namesakes, all_metrics

    known = all_metrics()
    name = _namesakes.ours(word, known) or _namesakes.ours(word.partition(".")[0], known)
    if name is None:
        near = did_you_mean(word.lower(), _namesakes.words(known))
        raise UsageError(f"there is no metric {word!r}. {near or 'loadstone explain lists them.'}")
    one = known[name]
    lines = [fit(name, width), *_text(one.doc, width), "", *_facts(one, width)]
    if others := list(_elsewhere(name, width)):
        lines += ["", "Elsewhere", *others]
    return "\n".join([*lines, *_chapter(one, width)])


def _listing(width: int) -> str:
    """All metrics by chapter, one line each."""
    from loadstone.metrics import all_metrics

    lines = []
    for module, metrics in groupby(all_metrics().values(), key=lambda one: one.fn.__module__):
        found = list(metrics)
        lines += [fit(_title(module), width)]
        wide = max(len(one.name) for one in found)
        lines += [fit(f"{INDENT}{one.name.ljust(wide)}  {_first(one.doc)}", width) for one in found]
        lines += [""]
    return "\n".join([*lines, *wrap("loadstone explain METRIC tells more of one.", width)])


def _facts(one: Metric, width: int) -> Iterator[str]:
    """Unit, direction, when it is null, and its short names."""
    from loadstone.metrics import NEEDS, _namesakes

    better = "" if one.better == "neither" else f", {one.better} is better"
    yield from wrap(f"{one.unit}{better}", width, f"{INDENT}      ", f"{INDENT}unit  ")
    if one.needs:
        null = ", ".join(NEEDS[need].lack for need in one.needs)
        yield from wrap(null, width, f"{INDENT}      ", f"{INDENT}null  ")
    if short := [word for word, name in _namesakes.SHORT.items() if name == one.name]:
        yield from wrap(", ".join(short), width, f"{INDENT}      ", f"{INDENT}also  ")


def _elsewhere(name: str, width: int) -> Iterator[str]:
    """How other tools compute theirs, and why it differs."""
    from loadstone.metrics._namesakes import namesakes

    for one in namesakes(name):
        told = f"{one.tool}, {', '.join(one.names)}: {one.how}."
        yield from wrap(told, width, INDENT * 2, INDENT)
        differs = f"Differs: {one.differs}." if one.differs else SAME
        yield from wrap(differs, width, INDENT * 2, INDENT * 2)


def _chapter(one: Metric, width: int) -> Iterator[str]:
    """The title of a metric's module, and what is said there of all in it: whole paragraphs, while there is room."""
    title = _title(one.fn.__module__)
    _, _, told = inspect.cleandoc(sys.modules[one.fn.__module__].__doc__ or "").partition("\n")
    lines = list(_text(told, width))
    if not lines:
        return
    yield from ["", *wrap(title, width)]
    if len(lines) <= MOST_REMARKS:
        yield from lines
        return
    ends = [at for at, line in enumerate(lines) if not line and at < MOST_REMARKS]
    yield from lines[: max(ends, default=0)]
    yield from wrap(f"More: docs/metrics.md, chapter {title.partition(':')[0]}.", width, INDENT, INDENT)


def _title(module: str) -> str:
    return inspect.cleandoc(sys.modules[module].__doc__ or module).partition("\n")[0].rstrip(".")


def _first(doc: str) -> str:
    """The first sentence, on one line."""
    return re.split(r"(?<=\.) (?=[A-Z])", " ".join(inspect.cleandoc(doc).partition("\n\n")[0].split()))[0]


def _text(doc: str, width: int) -> Iterator[str]:
    """Paragraphs, wrapped, a blank line between them."""
    for at, paragraph in enumerate(filter(None, map(str.strip, inspect.cleandoc(doc).split("\n\n")))):
        yield from (
            ["", *wrap(paragraph, width, INDENT, INDENT)] if at else wrap(paragraph, width, INDENT, INDENT)
        )
