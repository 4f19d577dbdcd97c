"""What the server says of its own defects: a sentence for the client, and one on stderr, once for each place in the code.

One rule: a defect costs the request that met it and no other; the server goes on.
"""

from __future__ import annotations

import sys
import traceback
from contextlib import suppress
from pathlib import Path
from typing import TextIO

from loadstone.terminal import printable


class Defects:
    """Those that one server has met."""

    def __init__(self, out: TextIO | None = None) -> None:
        """`out`: where they are noted; None: stderr."""
        self._out = out
        self._places: set[tuple[str, str]] = set()

    def note(self, doing: str, error: Exception) -> None:
        """Says what went wrong while the server was `doing` something, unless that place has been told of."""
        place = type(error).__name__, _where(error)
        if place in self._places:
            return
        self._places.add(place)
        sentence = f"loadstone: {doing}: {self.words(error)} It is answered with 500, and told here once."
        with suppress(OSError, ValueError):  # nobody reads it, or it is closed
            print(printable(sentence), file=self._out or sys.stderr, flush=True)

    @staticmethod
    def words(error: Exception) -> str:
        """What went wrong, as a sentence."""
        return f"{type(error).__name__}: {error} ({_where(error)}). This is a defect of loadstone; please report it."


def _where(error: Exception) -> str:
    """The place in the code."""
    trace = traceback.extract_tb(error.__traceback__)
    return f"{Path(trace[-1].filename).name}:{trace[-1].lineno}" if trace else "nowhere"
