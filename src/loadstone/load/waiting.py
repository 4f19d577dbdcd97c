"""How many requests wait at the client: due by now, and not taken from the plan by any worker.

Where a cap makes requests wait they stay in the plan, so no worker knows of them; main does, by the plan's due times.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from pathlib import Path

from loadstone.plan.store import Row, read_rows


class Waiting:
    """The queue of one phase, whose rows begin with number `first_row`. The plan is read no further than it is due."""

    def __init__(self, plan: Path, first_row: int) -> None:
        self._plan = plan
        self._first = self._wanted = first_row
        self._rows: Iterator[Row] = iter(())
        self._next: Row | None = None
        self._due: deque[int] = deque()
        """Positions of the conversations that are due and have not been taken."""

    def look(self, elapsed_ns: int, drawn: int) -> int:
        """How many wait, so long after the start of the phase, when so many rows have been taken."""
        while (row := self._peek()) is not None and row.due_ns <= elapsed_ns:
            if row.opens:
                self._due.append(row.request - self._first)
            self._next = None
        while self._due and self._due[0] < drawn:
            self._due.popleft()
        return len(self._due)

    def _peek(self) -> Row | None:
        """The next row; None where the plan has it not yet."""
        if self._next is None:
            self._next = next(self._rows, None)
            if self._next is None:  # the plan may have grown
                self._rows = read_rows(self._plan, self._wanted)
                self._next = next(self._rows, None)
            if self._next is not None:
                self._wanted = self._next.request + 1
        return self._next
