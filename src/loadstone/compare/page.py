"""A comparison for a terminal, and as Markdown. What may be compared stands first, the headline next, then every row."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.cells import cell_len

from loadstone.compare.result import Comparison, Pairing, Row, SideFacts
from loadstone.compare.words import ALONE, NOT_COMPARED, alone, change, label, short
from loadstone.figures import figures
from loadstone.terminal import fit, left, paint, printable, right, wrap

COLORS = {"VALID": "green", "DEGRADED": "yellow", "INVALID": "red"}
LEAST_WORDS = 24
"""Cells for a verdict beside its numbers; where there are fewer it has a line of its own."""
INDENT = "  "


def render(found: Comparison, *, width: int, color: bool) -> str:
    """The page for a terminal of this width."""
    lines: list[str] = []
    for number, one in enumerate(found.comparisons):
        lines += [""] * (number > 0) + list(_pairing(one, width, color))
    if found.regressions:
        lines += ["", *wrap(f"Worse beyond the limit: {', '.join(found.regressions)}.", width, INDENT)]
    return "\n".join(lines)


def markdown(found: Comparison) -> str:
    """The same for a page of a repository or a pull request."""
    lines: list[str] = []
    for one in found.comparisons:
        lines += [f"## {_cell(one.b.name)} against {_cell(one.a.name)}", ""]
        lines += [f"- {_cell(line)}" for line in (*_sides(one), *_remarks(one))]
        lines += ["", f"| metric | {_cell(one.a.name)} | {_cell(one.b.name)} | change [95 %] | verdict |"]
        lines += ["|---|---|---|---|---|"]
        for row in one.rows:
            name = f"**{label(row)}**" if row.headline else label(row)
            cells = (f"{name} ({row.unit})", figures(row.a), figures(row.b), change(row), _cell(row.verdict))
            lines.append(f"| {' | '.join(cells)} |")
        lines += ["", *(f"- {_cell(note)}" for note in _caveats(one)), ""]
    if found.regressions:
        lines += [f"**Worse beyond the limit:** {_cell(', '.join(found.regressions))}", ""]
    return "\n".join(lines).rstrip()


def _cell(text: str) -> str:
    return printable(text).replace("|", "\\|").replace("<", "&lt;")


def _pairing(one: Pairing, width: int, color: bool) -> Iterator[str]:
    for side in (one.a, one.b):
        yield from wrap(printable(_side(side)), width, INDENT)
        if side.certificate not in (None, "VALID"):
            text = f"{INDENT}{side.certificate}: {printable(side.headline)}"
            yield from (
                paint(line, COLORS[side.certificate], color) for line in wrap(text, width, INDENT, INDENT)
            )
    for sentence in one.refused:
        yield from (paint(line, "red", color) for line in wrap(printable(sentence), width, INDENT))
    for sentence in _remarks(one)[len(one.refused) :]:
        yield from wrap(printable(sentence), width, INDENT)
    for row in one.rows:
        if row.headline:
            said = f"{label(row)}: {row.verdict.removesuffix('.')}."
            yield ""
            yield from (paint(line, _color(row), color) for line in wrap(printable(said), width, INDENT))
    yield ""
    yield from _table(one, width, color)
    notes = [*_reasons(one), *_caveats(one)]
    yield from (line for note in notes for line in wrap(printable(note), width, INDENT, "- "))


def _sides(one: Pairing) -> list[str]:
    sides = [
        (side, f"; {side.certificate}: {side.headline}" if side.certificate not in (None, "VALID") else "")
        for side in (one.a, one.b)
    ]
    return [_side(side) + trouble for side, trouble in sides]


def _side(side: SideFacts) -> str:
    count = "" if side.requests is None else f", {side.requests:,} requests"
    return f"{side.name}: {', '.join(side.paths)} ({side.tool}{count})"


def _remarks(one: Pairing) -> list[str]:
    """Whether the two may be compared, and how."""
    how = (
        f"Compared request by request: {one.pairs:,} have the same prompt on both sides.{_columns(one)}"
        if one.paired and one.pairs is not None
        else f"Requests are not paired: {one.unpaired_because}."
    )
    return [*one.refused, *one.warnings, how, *one.notes]


def _columns(one: Pairing) -> str:
    """What stands in the columns where not every request has a partner that was answered, too."""
    over = sorted({row.pairs for row in one.rows if row.pairs is not None})
    if not over:
        return ""
    least = f"{over[0]:,}" if len(over) == 1 else f"{over[0]:,} to {over[-1]:,}"
    return (
        f" {one.a.name} and {one.b.name} are numbers of whole runs, and rates and shares are compared as such; a latency's"
        f" change is over the {least} requests that have it on both sides."
    )


def _table(one: Pairing, width: int, color: bool) -> Iterator[str]:
    heads = ("", one.a.name, one.b.name, "change [95 %]")
    cells = [(f"{label(row)} ({row.unit})", figures(row.a), figures(row.b), change(row)) for row in one.rows]
    names = max(cell_len(row[0]) for row in cells)
    names = min(names, max(2 * width // 5, 20))
    widths = [max(cell_len(printable(row[i])) for row in (heads, *cells)) for i in (1, 2, 3)]
    taken = names + sum(widths) + 2 * len(widths)
    beside = width - taken - 2
    head = _line(heads, names, widths)
    yield f"{head}  a difference?" if beside >= LEAST_WORDS else fit(head, width)
    for row, texts in zip(one.rows, cells, strict=True):
        line = _line(texts, names, widths)
        roomy = beside >= LEAST_WORDS
        indent = "" if roomy else INDENT * 2
        verdict = wrap(printable(short(row)), beside if roomy else width, indent, indent)
        painted = [paint(text, _color(row), color) for text in verdict]
        if roomy:
            yield f"{line}  {painted[0]}"
            yield from (" " * (taken + 2) + text for text in painted[1:])
        else:
            yield fit(line, width)
            yield from painted


def _line(texts: Sequence[str], names: int, widths: Sequence[int]) -> str:
    columns = [right(printable(text), width) for text, width in zip(texts[1:], widths, strict=True)]
    return "  ".join([left(printable(texts[0]), names), *columns])


def _color(row: Row) -> str | None:
    if not row.differs or row.change is None:
        return None
    lower = row.change < (0 if row.difference else 1)
    return "green" if lower == (row.better == "lower") else "red"


def _reasons(one: Pairing) -> list[str]:
    """Why rows are not compared, each reason once; and what the star behind a row means."""
    why: dict[str, list[str]] = {}
    for row in one.rows:
        if short(row) == NOT_COMPARED and row.reason:
            why.setdefault(row.reason, []).append(label(row))
    told = [f"Not compared ({_several(names)}): {reason}" for reason, names in why.items()]
    if any(map(alone, one.rows)):
        told.append(
            f"{ALONE} Asked about alone it would be a difference; among so many rows one such comes by chance (Holm)."
        )
    return told


def _several(names: Sequence[str]) -> str:
    return ", ".join(names) if len(names) <= 3 else f"{len(names)} rows"


def _caveats(one: Pairing) -> list[str]:
    """How the two count differently."""
    told = dict.fromkeys(
        f"{row.metric.replace('_', ' ')} is counted a little differently. {row.caveat}"
        for row in one.rows
        if row.caveat
    )
    return [
        *(
            [f"Counted differently on either side, so not compared: {', '.join(one.unlike)}."]
            if one.unlike
            else []
        ),
        *told,
    ]
