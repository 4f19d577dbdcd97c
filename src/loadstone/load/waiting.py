"""How many requests wait at the client: due by now, and not sent.

Where a limit makes requests wait they stay in the plan, so no worker knows of them; main does, by their due times.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Protocol

from loadstone.plan import schedule
from loadstone.plan.schedule import Phase
from loadstone.plan.store import Row, read_rows


class Queue(Protocol):
    """The queue of one phase."""

    def look(self, elapsed_ns: int, drawn: int, launched: int, held: int) -> int:
        """How many wait, so long after the start of the phase; see `Course.waiting`."""


def queue(phase: Phase, plan: Path, seed: int) -> Queue:
    """The queue of a phase that begins now."""
    if schedule.arrives(phase):
        return Arrived(islice(schedule.due_times(phase, seed), phase.requests))
    return Planned(plan, phase.first_row) if phase.timed and phase.slots is not None else Held()


class Held:
    """What waits is with the workers."""

    def look(self, elapsed_ns: int, drawn: int, launched: int, held: int) -> int:
        """See `Queue`."""
        return held


class Arrived:
    """Every arrival is one request, and due times are drawn: what has arrived and was not launched waits."""

    def __init__(self, due_times: Iterator[int]) -> None:
        self._due_times = due_times
        self._next = next(due_times, None)
        self._arrived = 0

    def look(self, elapsed_ns: int, drawn: int, launched: int, held: int) -> int:
        """See `Queue`."""
        while self._next is not None and self._next <= elapsed_ns:
            self._arrived += 1
            self._next = next(self._due_times, None)
        return max(0, self._arrived - launched)


class Planned:
    """Conversations stay in the plan until there is a place for them. The plan is read no further than it is due."""

    def __init__(self, plan: Path, first_row: int) -> None:
        self._plan = plan
        self._first = self._wanted = first_row
        self._rows: Iterator[Row] = iter(())
        self._next: Row | None = None
        self._due: deque[int] = deque()
        """Positions of the conversations that are due and have not been taken."""

    def look(self, elapsed_ns: int, drawn: int, launched: int, held: int) -> int:
        """See `Queue`."""
        while (row := self._peek()) is not None and row.due_ns <= elapsed_ns:
            if row.opens:
                self._due.append(row.request - self._first)
            self._next = None
        while self._due and self._due[0] < drawn:
            self._due.popleft()
        return len(self._due) + held

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
