"""Text for a terminal: safe characters, cells, colours.

One rule: a byte that came from a server, a file or a user reaches a terminal only through `printable`,
so it can neither move the cursor nor recolour, retitle or reorder what we say. Knows no report.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from typing import TextIO

from rich.cells import cell_len, set_cell_size

RESET = "\x1b[0m"
COLORS = {"red": "\x1b[1;31m", "yellow": "\x1b[1;33m", "green": "\x1b[1;32m"}

HIDDEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
"""Unicode categories that are not shown as they are: controls, bidirectional and zero-width marks,
lone surrogates, unassigned characters, line and paragraph separators."""


def printable(text: str) -> str:
    r"""`text` on one line: runs of white space become one space, other hidden characters their escapes (`\x1b`)."""
    return escaped(" ".join(text.split()))


def escaped(text: str) -> str:
    r"""`text` with nothing left out: hidden characters become their escapes, line ends too (`\x0a`)."""
    return "".join(_shown(char) for char in text)


def _shown(char: str) -> str:
    if unicodedata.category(char) not in HIDDEN:
        return char
    return f"\\x{ord(char):02x}" if ord(char) < 0x100 else char.encode("ascii", "backslashreplace").decode()


def fit(text: str, width: int) -> str:
    """`text` cut to `width` cells, the cut marked by an ellipsis; unchanged when it fits."""
    if cell_len(text) <= width:
        return text
    return set_cell_size(text, max(width - 1, 0)).rstrip() + "…" if width > 0 else ""


def left(text: str, width: int) -> str:
    """`text` cut or padded to exactly `width` cells, at the left."""
    shown = fit(text, width)
    return shown + " " * (width - cell_len(shown))


def right(text: str, width: int) -> str:
    """`text` padded to at least `width` cells, at the right."""
    return " " * (width - cell_len(text)) + text


def wrap(text: str, width: int, indent: str = "", first: str = "") -> list[str]:
    """The lines of `text`, each at most `width` cells wide; the first begins with `first`, the others with `indent`.

    A word wider than a line is cut, its end marked by an ellipsis.
    """
    lines, line, fresh = [], first, True
    for word in text.split():
        joined = line + word if fresh else f"{line} {word}"
        if fresh or cell_len(joined) <= width:
            line, fresh = joined, False
        else:
            lines.append(fit(line, width))
            line = indent + word
    return [*lines, fit(line, width)]


def paint(text: str, color: str | None, on: bool) -> str:
    """`text` in one of `COLORS` when `on`; as it is otherwise."""
    return f"{COLORS[color]}{text}{RESET}" if on and color else text


def wants_color(stream: TextIO, environ: Mapping[str, str]) -> bool:
    """Whether to colour: the stream is a terminal that can, and `NO_COLOR` (no-color.org) is not set."""
    return stream.isatty() and not environ.get("NO_COLOR") and environ.get("TERM") != "dumb"
