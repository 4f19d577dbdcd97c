"""Flights that wait for a connection: one line of them all, and the same order once more for each target."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence

from loadstone.load.flight import Flight

Line = OrderedDict[Flight, None]


class Postponed:
    """The flights of a worker that wait. Everything costs the same however many there are."""

    def __init__(self, targets: int) -> None:
        self.line: Line = OrderedDict()
        """All of them, in the order in which connections are opened."""
        self.lines: Sequence[Line] = [OrderedDict() for _ in range(targets)]
        """Those of each target, in the same order."""

    def join(self, flight: Flight, *, first: bool = False) -> None:
        """Puts a flight behind all others, or before them."""
        for line in (self.line, self.lines[flight.target]):
            line[flight] = None
            line.move_to_end(flight, last=not first)

    def leave(self, flight: Flight) -> None:
        """Takes a flight out, if it is there."""
        self.line.pop(flight, None)
        self.lines[flight.target].pop(flight, None)
