"""How many may be at a time: places under a step function, taken and given back.

The slots of a load are one such capacity, requests before their first token another. Pure: told the time, never asks.
"""

from __future__ import annotations

from collections import deque

from loadstone.plan.steps import Steps

NEVER_NS = 1 << 62
UNLIMITED = 1 << 62


class Capacity:
    """Places. `available` are free, as of the last `advance`; that has something to do from `changes_ns` on.

    When there are fewer of a sudden than are taken, those given back first are not free for anyone else.
    """

    __slots__ = (
        "_freed",
        "_level",
        "_resting",
        "_steps",
        "available",
        "changes_ns",
        "limited",
        "shut",
        "taken",
    )

    def __init__(self) -> None:
        self.taken = 0
        self._resting: deque[int] = deque()
        """When those that rest may be taken again."""
        self._freed: deque[int] = deque()
        """When each free place became free."""
        self.reset(None, 0)

    def reset(self, steps: Steps | None, start_ns: int, taken: int | None = None) -> None:
        """Another step function from `start_ns` on (None: as many as anyone likes).

        What is taken stays so, unless `taken` says how much is.
        """
        self.taken = self.taken if taken is None else taken
        self.limited = steps is not None
        self._steps = deque((start_ns + at_ns, level) for at_ns, level in steps or ())
        self._freed.clear()
        self._resting.clear()
        self._level = 0
        self.available = 0 if self.limited else UNLIMITED
        if self._steps:
            self._set(*self._steps.popleft())
        self._note_changes()

    def _set(self, at_ns: int, level: int) -> None:
        """As many places from `at_ns` on."""
        self._level = level
        free = max(0, level - self.taken - len(self._resting))
        while len(self._freed) > free:
            self._freed.pop()
        while len(self._freed) < free:
            self._freed.append(at_ns)
        self.available = free

    def advance(self, now: int) -> None:
        """Comes to the steps and the ends of rests up to `now`."""
        while self._steps and self._steps[0][0] <= now:
            self._set(*self._steps.popleft())
        while self._resting and self._resting[0] <= now:
            self._free(self._resting.popleft())
        self._note_changes()

    def _note_changes(self) -> None:
        self.shut = self.limited and not self._level and not self._steps
        """There is no place and never will be."""
        step_ns = self._steps[0][0] if self._steps else NEVER_NS
        self.changes_ns = min(step_ns, self._resting[0]) if self._resting else step_ns

    def _free(self, at_ns: int) -> None:
        if self.taken + len(self._resting) + self.available < self._level:
            self._freed.append(at_ns)
            self.available += 1

    def take(self, now: int) -> int:
        """Takes a place, also where none is free; the moment it became free."""
        self.taken += 1
        if not self._freed:
            return now
        self.available -= 1
        return self._freed.popleft()

    def give(self, at_ns: int, rest_ns: int = 0) -> None:
        """Gives a place back, free for others after a rest."""
        self.taken -= 1
        if not self.limited:
            return
        if rest_ns:
            self._resting.append(at_ns + rest_ns)
            self._note_changes()
        else:
            self._free(at_ns)
