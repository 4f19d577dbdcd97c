"""When steps began and how long their tokens took to send: the server's own punctuality. JSON lines, one a step.

Times are CLOCK_MONOTONIC ns.
"""

from __future__ import annotations

from pathlib import Path

import msgspec


class StepRow(msgspec.Struct):
    """One round in which steps ended and the next ones began."""

    due_ns: int
    """When the next step was to begin: where the one before ended, on the engine's time line."""
    begun_ns: int
    """When it began."""
    sent_ns: int
    """When the last token of the step before was given to the kernel."""
    sequences: int
    """Sequences that got tokens from it."""


class StepFile:
    """The file; written behind a buffer, so that a step costs a copy and no system call."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("wb", buffering=1 << 20)

    def add(self, row: StepRow) -> None:
        """Adds a step."""
        self._file.write(msgspec.json.encode(row) + b"\n")

    def close(self) -> None:
        """Writes what is left."""
        self._file.close()


def read_steps(path: Path) -> list[StepRow]:
    """The rows of a file; a torn last line is left out."""
    lines = path.read_bytes().splitlines(keepends=True)
    return [msgspec.json.decode(line, type=StepRow) for line in lines if line.endswith(b"\n")]
