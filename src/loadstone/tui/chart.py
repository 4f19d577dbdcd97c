"""A line in a terminal: both axes logarithmic, eight dots a cell, vertical marks with their names above.

Pure: points in, lines of text out. Knows no colours and nothing of what is drawn.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import ceil, floor, isfinite, log2, log10
from typing import NamedTuple

from loadstone.figures import brief

DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))
"""Of a Braille cell, by row and column."""
BLANK = 0x2800
MARK, ASCII_MARK = "┊", ":"
LEAST = 1.15
"""A range of values is never narrower than this factor, or noise would fill the panel."""


class Mark(NamedTuple):
    """A vertical line, and what stands above it."""

    at: float
    name: str


class Panel(NamedTuple):
    """One line of a chart: `points` in the order of x, of which those beyond `solid` are drawn thin."""

    title: str
    points: Sequence[tuple[float, float]]
    solid: float = float("inf")


def chart(
    panel: Panel, marks: Sequence[Mark], *, width: int, height: int, axis: str, unicode: bool = True
) -> list[str]:
    """The panel in lines of at most `width` cells: title, names of marks, `height` rows, axis."""
    points = [(x, y) for x, y in panel.points if x > 0 and y > 0 and isfinite(y)]
    low, high = _range([y for _, y in points])
    labels = _labels(low, high, height)
    margin = max(map(len, labels)) + 1
    columns = width - margin - 1
    across = _Scale(points[0][0], points[-1][0], 2 * columns if unicode else columns)
    up = _Scale(low, high, 4 * height if unicode else height)
    places = [(across.at(mark.at) // (2 if unicode else 1), mark) for mark in marks if across.holds(mark.at)]
    cells = _cells(points, panel.solid, across, up, columns, height, unicode)
    line = MARK if unicode else ASCII_MARK
    for place, _ in places:
        for row in cells:
            if row[place] == " ":
                row[place] = line
    wall, corner, floor_ = ("│", "└", "─") if unicode else ("|", "+", "-")
    body = [
        f"{label.rjust(margin)}{wall}{''.join(row)}".rstrip()
        for label, row in zip(labels, cells, strict=True)
    ]
    names = " " * (margin + 1) + _names(places, columns)
    ticks = _ticks(across, columns, 2 if unicode else 1)
    return [
        panel.title,
        *([names.rstrip()] if places else []),
        *body,
        " " * margin + corner + floor_ * columns,
        (" " * (margin + 1) + ticks).rstrip() + f"  {axis}" * (len(ticks.rstrip()) + len(axis) + 2 <= columns),
    ]  # fmt: skip


def beside(left: Sequence[str], right: Sequence[str], width: int) -> list[str]:
    """Two blocks of lines beside each other, the second from cell `width` on."""
    longest = max(len(left), len(right))
    padded = [*left, *[""] * (longest - len(left))]
    other = [*right, *[""] * (longest - len(right))]
    return [f"{a.ljust(width)}{b}".rstrip() for a, b in zip(padded, other, strict=True)]


class _Scale(NamedTuple):
    """Values on dots, by their logarithms."""

    low: float
    high: float
    dots: int

    def at(self, value: float) -> int:
        """The dot of a value, within the scale."""
        if self.high <= self.low:
            return 0
        share = log10(value / self.low) / log10(self.high / self.low)
        return min(max(round(share * (self.dots - 1)), 0), self.dots - 1)

    def value(self, dot: int) -> float:
        """The value at a dot."""
        return float(self.low * (self.high / self.low) ** (dot / max(self.dots - 1, 1)))

    def holds(self, value: float) -> bool:
        return self.low <= value <= self.high


def _range(values: Sequence[float]) -> tuple[float, float]:
    low, high = min(values), max(values)
    if high < low * LEAST:
        middle = (low * high) ** 0.5
        low, high = middle / LEAST**0.5, middle * LEAST**0.5
    return low, high


def _labels(low: float, high: float, height: int) -> list[str]:
    """The values at the top, in the middle and at the bottom row."""
    found = [""] * height
    found[0], found[-1] = brief(high), brief(low)
    if height > 4:
        found[(height - 1) // 2] = brief(_Scale(low, high, height).value(height - 1 - (height - 1) // 2))
    return found


def _cells(
    points: Sequence[tuple[float, float]],
    solid: float,
    across: _Scale,
    up: _Scale,
    columns: int,
    height: int,
    unicode: bool,
) -> list[list[str]]:
    """The line in cells; each column of dots is joined to the one before."""
    bits = [[0] * columns for _ in range(height)]
    wide, tall = (2, 4) if unicode else (1, 1)
    before: int | None = None
    for dot in range(across.dots):
        x = across.value(dot)
        y = up.at(_interpolated(points, x))
        start = y if before is None else before + (y > before) - (y < before)
        thin = x > solid * (1 + 1e-9)
        for level in range(min(start, y), max(start, y) + 1):
            if thin and (dot + level) % 3:
                continue
            row = height - 1 - level // tall
            bits[row][dot // wide] |= DOTS[tall - 1 - level % tall][dot % wide] if unicode else 1
        before = y
    return [[_shown(bit, unicode) for bit in row] for row in bits]


def _shown(bit: int, unicode: bool) -> str:
    if not bit:
        return " "
    return chr(BLANK + bit) if unicode else "*"


def _interpolated(points: Sequence[tuple[float, float]], x: float) -> float:
    """The line at x, straight between points on logarithmic axes."""
    for (x0, y0), (x1, y1) in pairwise(points):
        if x <= x1:
            if x1 <= x0:
                return y1
            share = max(0.0, log10(x / x0) / log10(x1 / x0))
            return float(y0 * (y1 / y0) ** share)
    return points[-1][1]


def _names(places: Sequence[tuple[int, Mark]], columns: int) -> str:
    """The names of the marks above them: of the last one to the right of its line, of those before it to the left.

    One that has no room beside the name before it is left out.
    """
    line = [" "] * columns
    ordered = sorted(places, key=lambda pair: pair[0])
    taken = 0
    for place, mark in ordered:
        last = mark is ordered[-1][1]
        start = place if last else max(place - len(mark.name) + 1, 0)
        start = max(min(start, columns - len(mark.name)), taken)
        if start + len(mark.name) <= columns:
            line[start : start + len(mark.name)] = mark.name
            taken = start + len(mark.name) + 2
    return "".join(line)


def _ticks(across: _Scale, columns: int, wide: int) -> str:
    """Powers of two (of four, of eight where they stand too close) below their places."""
    line = [" "] * columns
    least, most = ceil(log2(across.low) - 1e-9), floor(log2(across.high) + 1e-9)
    for every in (1, 2, 3, 4, 6):
        words = {2.0**power: f"{2.0**power:g}" for power in range(least, most + 1, every)}
        texts = [(min(across.at(at) // wide, columns - len(text)), text) for at, text in words.items()]
        if all(a + len(text) + 1 <= b for (a, text), (b, _) in pairwise(texts)):
            break
    for start, text in texts:
        line[start : start + len(text)] = text
    return "".join(line)
