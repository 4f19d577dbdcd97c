"""Idle connections: which one, if any, the next request goes on."""

from __future__ import annotations

from typing import Literal, Protocol

from loadstone.load.connection import Connection
from loadstone.load.flight import Flight

Reuse = Literal["pooled", "never", "sticky-user-sessions"]


class Pool(Protocol):
    """Kept-alive connections that carry no flight."""

    def take(self, flight: Flight) -> Connection | None:
        """A connection for this flight, not idle any more; None when it needs a new one."""

    def keep(self, connection: Connection, flight: Flight) -> bool:
        """Takes in the connection that `flight` is done with, if another flight may come that can use it."""

    def remove(self, connection: Connection) -> None:
        """An idle connection was closed."""


class Pooled:
    """Any flight goes on any connection, the one used last first."""

    def __init__(self) -> None:
        self._idle: dict[Connection, None] = {}

    def take(self, flight: Flight) -> Connection | None:
        """See `Pool`."""
        return self._idle.popitem()[0] if self._idle else None

    def keep(self, connection: Connection, flight: Flight) -> bool:
        """See `Pool`."""
        self._idle[connection] = None
        return True

    def remove(self, connection: Connection) -> None:
        """See `Pool`."""
        del self._idle[connection]


class Never:
    """Every flight has a connection of its own."""

    def take(self, flight: Flight) -> Connection | None:
        """None."""
        return None

    def keep(self, connection: Connection, flight: Flight) -> bool:
        """Keeps none."""
        return False

    def remove(self, connection: Connection) -> None:
        """There is none to remove."""


class Sticky:
    """Every conversation has a connection of its own, from its first turn to its last."""

    def __init__(self) -> None:
        self._idle: dict[int, Connection] = {}
        self._conversations: dict[Connection, int] = {}

    def take(self, flight: Flight) -> Connection | None:
        """See `Pool`."""
        connection = self._idle.pop(flight.row.conversation, None)
        if connection is not None:
            del self._conversations[connection]
        return connection

    def keep(self, connection: Connection, flight: Flight) -> bool:
        """See `Pool`."""
        conversation = flight.row.conversation
        if flight.row.final or conversation in self._idle:
            return False
        self._idle[conversation] = connection
        self._conversations[connection] = conversation
        return True

    def remove(self, connection: Connection) -> None:
        """See `Pool`."""
        del self._idle[self._conversations.pop(connection)]


def pool(reuse: Reuse) -> Pool:
    """An empty pool of that strategy."""
    kinds: dict[Reuse, type[Pool]] = {"pooled": Pooled, "never": Never, "sticky-user-sessions": Sticky}
    return kinds[reuse]()
