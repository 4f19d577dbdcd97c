"""Limits of one length that count from moments in the past: when each of several things has rested for too long.

As `load.limits.Limit`, but in any order: what is looked at late has a limit that is up soon. Knows no engine.
"""

from __future__ import annotations

import heapq
from collections.abc import Hashable, Iterator
from itertools import count
from typing import Generic, TypeVar

SLACK = 64
"""So many entries of what has gone may lie about, beside as many as there are things."""

T = TypeVar("T", bound=Hashable)


class Pauses(Generic[T]):
    """Things that may rest for `span_ns`. Everything costs the logarithm of how many there are, at most."""

    def __init__(self, span_ns: int) -> None:
        self.span_ns = span_ns
        self._until: dict[T, int] = {}
        self._heap: list[tuple[int, int, T]] = []
        """Some of them no longer hold; of equal moments the one that was noted first comes first."""
        self._numbers = count()

    def start(self, thing: T, since_ns: int) -> None:
        """`thing` has rested since then."""
        until_ns = self._until[thing] = since_ns + self.span_ns
        heapq.heappush(self._heap, (until_ns, next(self._numbers), thing))
        if len(self._heap) > 2 * len(self._until) + SLACK:
            self._heap = [entry for entry in self._heap if self._holds(entry)]
            heapq.heapify(self._heap)

    def stop(self, thing: T) -> None:
        """Takes the limit off `thing`, if it has one."""
        self._until.pop(thing, None)

    @property
    def next_ns(self) -> int | None:
        """When the first limit is up; None when there is none."""
        while self._heap and not self._holds(self._heap[0]):
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def expired(self, now: int) -> Iterator[T]:
        """Those whose limit is up, each taken off as it is given."""
        while (next_ns := self.next_ns) is not None and next_ns <= now:
            thing = heapq.heappop(self._heap)[2]
            del self._until[thing]
            yield thing

    def _holds(self, entry: tuple[int, int, T]) -> bool:
        until_ns, _, thing = entry
        return self._until.get(thing) == until_ns
