"""Which server a request goes to where that is decided when it is sent: to the one with the fewest in flight."""

from __future__ import annotations

from loadstone.plan.store import ANY_TARGET, Row


class Homes:
    """The servers of one worker, by how many of its requests are in flight to each. A conversation stays where it began."""

    def __init__(self, targets: int, first: int = 0) -> None:
        self.in_flight = [0] * targets
        self._turn = first
        """Of several with equally few the next in turn is chosen; workers begin with different ones."""
        self._homes: dict[tuple[int, int], int] = {}
        """Of every conversation that chose its server here and goes on, by phase and number."""

    def choose(self, row: Row) -> int:
        """The server of a row: the one planned, or that of its conversation, or the one with the fewest requests."""
        if row.target != ANY_TARGET:
            return row.target
        conversation = (row.phase, row.conversation)
        target = self._least() if row.opens else self._homes.pop(conversation)
        if not row.final:
            self._homes[conversation] = target
        return target

    def _least(self) -> int:
        count = len(self.in_flight)
        target = min(range(count), key=lambda one: (self.in_flight[one], (one - self._turn) % count))
        self._turn = target + 1
        return target

    def forget(self, row: Row) -> None:
        """The conversation of a row does not go on."""
        self._homes.pop((row.phase, row.conversation), None)
