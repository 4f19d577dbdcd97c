"""Who is next: the line before an engine, by arrival or by priority. Every operation costs the same however long it is."""

from __future__ import annotations

import heapq
from collections import OrderedDict
from collections.abc import Iterator
from typing import Generic, TypeVar

from loadstone.sim.sequence import Sequence

S = TypeVar("S", bound=Sequence)


LEFT_OVER = 64
"""Entries of those who have left that are not worth a new heap."""


class Fcfs(Generic[S]):
    """First come, first served; what is put back goes before all others."""

    def __init__(self) -> None:
        self._line: OrderedDict[S, None] = OrderedDict()

    def __len__(self) -> int:
        return len(self._line)

    def __contains__(self, sequence: S) -> bool:
        return sequence in self._line

    def __iter__(self) -> Iterator[S]:
        return iter(self._line)

    def add(self, sequence: S) -> None:
        """Behind all others."""
        self._line[sequence] = None

    def put_back(self, sequence: S) -> None:
        """Before all others."""
        self._line[sequence] = None
        self._line.move_to_end(sequence, last=False)

    def first(self) -> S:
        """The next one; it stays."""
        return next(iter(self._line))

    def remove(self, sequence: S) -> None:
        """Takes one out, wherever it stands."""
        del self._line[sequence]


class ByPriority(Generic[S]):
    """The lowest number first, among equals the first to come.

    Who has left stays in the heap until it comes to its top, or until they are as many as those who are there.
    """

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, S]] = []
        self._there: set[S] = set()

    def __len__(self) -> int:
        return len(self._there)

    def __contains__(self, sequence: S) -> bool:
        return sequence in self._there

    def __iter__(self) -> Iterator[S]:
        return iter(self._there)

    def add(self, sequence: S) -> None:
        """Where its priority puts it."""
        self._there.add(sequence)
        heapq.heappush(self._heap, (sequence.priority, sequence.order, sequence))

    put_back = add

    def first(self) -> S:
        """The next one; it stays."""
        while self._heap[0][2] not in self._there:
            heapq.heappop(self._heap)
        return self._heap[0][2]

    def remove(self, sequence: S) -> None:
        """Takes one out, wherever it stands."""
        self._there.remove(sequence)
        if not self._there or len(self._heap) > 2 * len(self._there) + LEFT_OVER:
            self._heap = [(one.priority, one.order, one) for one in self._there]
            heapq.heapify(self._heap)
