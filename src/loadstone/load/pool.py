"""Idle connections to one target: which one, if any, the next request goes on."""

from __future__ import annotations

from typing import Literal, Protocol

from loadstone.load.connection import Connection
from loadstone.load.flight import Flight
from loadstone.plan.store import Row

Reuse = Literal["pooled", "never", "sticky-user-sessions"]
_Conversation = tuple[int, int]
"""Its phase, and its number there."""


class Pool(Protocol):
    """Kept-alive connections to one target that carry no flight."""

    shared: bool
    """Whether any flight may go on any of them: then one that waits comes before one that begins."""

    def take(self, flight: Flight) -> Connection | None:
        """A connection for this flight, not idle any more; None when it needs a new one."""

    def keep(self, connection: Connection, flight: Flight) -> bool:
        """Takes in the connection that `flight` is done with, if another flight may come that can use it."""

    def oldest(self) -> Connection | None:
        """The one that has been idle for longest, if there is any."""

    def kept_for(self, row: Row) -> Connection | None:
        """The one that only further turns of this row's conversation can go on, if there is any."""

    def remove(self, connection: Connection) -> None:
        """An idle connection was closed."""


class Pooled:
    """Any flight goes on any connection, the one used last first."""

    shared = True

    def __init__(self) -> None:
        self._idle: dict[Connection, None] = {}

    def take(self, flight: Flight) -> Connection | None:
        """See `Pool`."""
        return self._idle.popitem()[0] if self._idle else None

    def keep(self, connection: Connection, flight: Flight) -> bool:
        """See `Pool`."""
        self._idle[connection] = None
        return True

    def oldest(self) -> Connection | None:
        """See `Pool`."""
        return next(iter(self._idle), None)

    def kept_for(self, row: Row) -> Connection | None:
        """None: it is for everybody."""
        return None

    def remove(self, connection: Connection) -> None:
        """See `Pool`."""
        del self._idle[connection]


class Never:
    """Every flight has a connection of its own."""

    shared = False

    def take(self, flight: Flight) -> Connection | None:
        """None."""
        return None

    def keep(self, connection: Connection, flight: Flight) -> bool:
        """Keeps none."""
        return False

    def oldest(self) -> Connection | None:
        """None."""
        return None

    def kept_for(self, row: Row) -> Connection | None:
        """None."""
        return None

    def remove(self, connection: Connection) -> None:
        """There is none to remove."""


class Sticky:
    """Every conversation has a connection of its own, from its first turn to its last.

    Unless it is needed for something else meanwhile: then the next turn gets another one.
    """

    shared = False

    def __init__(self) -> None:
        self._idle: dict[_Conversation, Connection] = {}
        self._conversations: dict[Connection, _Conversation] = {}

    def take(self, flight: Flight) -> Connection | None:
        """See `Pool`."""
        connection = self._idle.pop(_conversation(flight.row), None)
        if connection is not None:
            del self._conversations[connection]
        return connection

    def keep(self, connection: Connection, flight: Flight) -> bool:
        """See `Pool`."""
        conversation = _conversation(flight.row)
        if flight.row.final or conversation in self._idle:
            return False
        self._idle[conversation] = connection
        self._conversations[connection] = conversation
        return True

    def oldest(self) -> Connection | None:
        """See `Pool`."""
        return next(iter(self._conversations), None)

    def kept_for(self, row: Row) -> Connection | None:
        """See `Pool`."""
        return self._idle.get(_conversation(row))

    def remove(self, connection: Connection) -> None:
        """See `Pool`."""
        del self._idle[self._conversations.pop(connection)]


def _conversation(row: Row) -> _Conversation:
    return row.phase, row.conversation


def pool(reuse: Reuse) -> Pool:
    """An empty pool of that strategy."""
    kinds: dict[Reuse, type[Pool]] = {"pooled": Pooled, "never": Never, "sticky-user-sessions": Sticky}
    return kinds[reuse]()
