"""A worker's connections: sending on them, keeping them alive, closing them.

A connection leads to one target, and carries flights to it only; each target has its own idle connections.
Making them is `opening`'s, reading the loop's own business. What happens to a flight is told through two calls:
`started` when its first byte is about to go, `ended` when there is no way on. When it was written is noted on the
flight itself.
"""

from __future__ import annotations

import socket
import ssl
import time
from collections.abc import Callable
from struct import Struct
from typing import Any

from httptools import HttpParserError, HttpParserUpgrade

from loadstone.load import sockets
from loadstone.load.connection import READING, SENDING, Connection, Streaming
from loadstone.load.flight import Flight
from loadstone.load.job import Job
from loadstone.load.opening import Opening
from loadstone.load.poller import READ, WRITE, Poller
from loadstone.load.pool import Pool, pool
from loadstone.load.tls import Tls
from loadstone.plan.store import Row
from loadstone.recording import RESENT, START, WireEnd
from loadstone.wire.redirect import FOLLOWED, moved

Ended = Callable[[Flight, WireEnd, int, str], None]
Started = Callable[[Connection, Flight, int], None]
_RESET = Struct("ii").pack(1, 0)
"""SO_LINGER: the port of a connection that is closed so is free at once."""


class Links:
    """All connections of a worker. `by_fd` and `waiting_fds` are for the loop."""

    def __init__(
        self,
        job: Job,
        poller: Poller,
        stamps: bool,
        predicates: tuple[Callable[[bytes], bool], Callable[[bytes], bool]],
        started: Started,
        ended: Ended,
    ) -> None:
        self.by_fd: list[Connection | None] = [None] * 1024
        """Indexed by descriptor; always longer than the highest one in use."""
        self.waiting_fds: set[int] = set()
        """Descriptors whose first output has not come."""
        self.connects = 0
        self._carriers: dict[Flight, Connection] = {}
        self._idle: list[Pool] = [pool(job.reuse) for _ in job.targets]
        self._contexts = [sockets.tls_context(target.tls) if target.tls else None for target in job.targets]
        self._shared = self._idle[0].shared
        self._job = job
        self._poller = poller
        self.opening = Opening(job, poller, stamps, self)
        self._begun, self._stream_ended = predicates
        self._started = started
        self._ended = ended

    def carry(self, flight: Flight) -> None:
        """Puts a flight on its way, behind those that wait for a connection it could take from them."""
        if self._shared and self.opening.postponed:
            self.opening.postpone(flight)
            self.resume(time.monotonic_ns())
        elif not self._ride(flight):
            self.opening.begin(flight)

    def resume(self, now: int) -> None:
        """Goes on with the flights that wait: on connections that have become free, then on new ones."""
        for line in self.opening.lines():
            while line and self._ride(next(iter(line))):
                pass
        self.opening.resume(now)

    def _ride(self, flight: Flight) -> bool:
        """Sends a flight on a kept-alive connection to its target, if there is one that can take it."""
        idle = self._idle[flight.target]
        while (connection := idle.take(flight)) is not None:
            if connection.is_quiet():
                if self.opening.postponed:
                    self.opening.leave(flight, time.monotonic_ns())
                connection.renew(flight)
                self._carriers[flight] = connection
                self._send(connection, flight)
                return True
            self._shut(connection)
        return False

    def adopt(self, sock: socket.socket, flight: Flight) -> Connection:
        """See `opening.Owner`."""
        target, context = self._job.targets[flight.target], self._contexts[flight.target]
        tls = Tls(context, target.tls.server_name) if context and target.tls else None
        if self._job.streaming:
            connection: Connection = Streaming(sock, flight, tls, self._begun, self._stream_ended)
        else:
            connection = Connection(sock, flight, tls)
        self._carriers[flight] = connection
        if connection.fd >= len(self.by_fd):
            self.by_fd += [None] * (connection.fd + 1)
        self.by_fd[connection.fd] = connection
        return connection

    def ready(self, connection: Connection, flight: Flight) -> None:
        """See `opening.Owner`."""
        self.connects += 1
        self._send(connection, flight)

    def refused(self, connection: Connection | None, flight: Flight, end: WireEnd, message: str) -> None:
        """See `opening.Owner`."""
        if connection is not None:
            self.drop(connection)
        self._ended(flight, end, time.monotonic_ns(), message)

    def make_room(self, address: tuple[Any, ...] | None) -> bool:
        """See `opening.Owner`. It is the connection that has been idle for longest."""
        idle = [
            connection
            for kept, target in zip(self._idle, self._job.targets, strict=True)
            if address in (None, target.address) and (connection := kept.oldest()) is not None
        ]
        if not idle:
            return False
        connection = min(idle, key=lambda connection: connection.read_ns)
        if address is not None:
            connection.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        self.drop(connection)
        return True

    def proceed(self, connection: Connection, mask: int) -> bool:
        """Goes on with making a connection, or with sending; True when there may be an answer to read."""
        flight = connection.flight
        assert flight is not None  # only a connection in use is in another state than READING
        if connection.state != SENDING:
            self.opening.proceed(connection, flight, mask)
        elif mask & ~WRITE:
            return True  # an answer before the request is out: were it written first, a reset would lose the answer
        else:
            self._write(connection, flight)
        return False

    # ---- sending ----------------------------------------------------------------------------------

    def _send(self, connection: Connection, flight: Flight) -> None:
        """Gives the request to the kernel; `sent` is the moment before, of a redirected one that of the first time."""
        payload = flight.payload
        try:
            connection.outgoing = payload if connection.tls is None else connection.tls.encrypt(payload)
        except ssl.SSLError as error:  # an idle connection whose server wants to shake hands anew
            self.broken(connection, error)
            return
        now = time.monotonic_ns()
        if not flight.redirects:
            flight.sent_ns = now
        self._started(connection, flight, now)
        self._write(connection, flight)

    def _write(self, connection: Connection, flight: Flight) -> None:
        try:
            written = connection.sock.send(connection.outgoing)
        except BlockingIOError:
            written = 0
        except OSError as error:
            self.broken(connection, error)
            return
        if written < len(connection.outgoing):
            connection.outgoing = memoryview(connection.outgoing)[written:]
            connection.state = SENDING
            self._poller.modify(connection.fd, READ | WRITE)
            return
        if not flight.redirects:
            flight.written_ns = time.monotonic_ns()
        connection.outgoing = b""
        if connection.state == SENDING:
            connection.state = READING
            self._poller.modify(connection.fd, READ)

    # ---- the ends of connections --------------------------------------------------------------------

    def complete(self, connection: Connection, flight: Flight, now: int) -> None:
        """The answer is whole: the connection is kept if both sides can go on with it."""
        usable = connection.keeps_alive and not connection.outgoing and not connection.strays
        self._whole(connection, flight, now, usable)

    def _whole(self, connection: Connection, flight: Flight, now: int, usable: bool) -> None:
        """An answer has come to its end; a redirect to the same server makes it go on."""
        detour = self._moved_to(connection, flight) if flight.status in FOLLOWED else None
        if usable and self._idle[flight.target].keep(connection, flight):
            self.waiting_fds.discard(connection.fd)
            connection.flight = None
            del self._carriers[flight]
        else:
            self.drop(connection)
        if detour is None:
            self._ended(flight, WireEnd.COMPLETE, now, "")
        else:
            flight.redirect(detour)
            self.carry(flight)

    def _moved_to(self, connection: Connection, flight: Flight) -> bytes | None:
        """The request as it goes to where a redirect points; None when it is not to be followed."""
        if flight.redirects or not flight.payload:
            return None
        target = self._job.targets[flight.target]
        return moved(flight.payload, connection.head(), target.authority, tls=target.tls is not None)

    def unframed(self, connection: Connection, flight: Flight, now: int, error: Exception) -> None:
        """The framer refused what came, or our own look at it failed.

        After a complete message the former is only a reason to close. Where the answer should begin on a kept-alive
        connection, it is most likely the rest of the one before, which is not this flight's fault.
        """
        if not isinstance(error, HttpParserError | HttpParserUpgrade):
            self.drop(connection)
            self._ended(flight, WireEnd.CLIENT, now, repr(error))
        elif connection.complete:
            self._whole(connection, flight, now, usable=False)
        elif connection.reused and not flight.status and not flight.retries:
            self._again(connection, flight)
        else:
            self.drop(connection)
            self._ended(flight, WireEnd.PROTOCOL, now, str(error) or type(error).__name__)

    def _again(self, connection: Connection, flight: Flight) -> None:
        """Tries a flight once more, on a new connection."""
        self.drop(connection)
        flight.retries += 1
        flight.received = False
        flight.sending = RESENT if flight.sent_ns else START
        self.opening.begin(flight)

    def closed(self, connection: Connection, now: int) -> None:
        """The server closed the connection."""
        flight = connection.flight
        if flight is not None and flight.received and connection.ends_with_close():
            self._whole(connection, flight, now, usable=False)
        elif (flight := self._bereft(connection)) is not None:
            self._ended(flight, WireEnd.CLOSED, now, "")

    def broken(self, connection: Connection, error: OSError) -> None:
        """The connection was reset, or cannot be written to."""
        flight = self._bereft(connection)
        if flight is not None:
            self._ended(flight, WireEnd.RESET, time.monotonic_ns(), str(error))

    def _bereft(self, connection: Connection) -> Flight | None:
        """The flight that a lost connection leaves without a way on, if there is one.

        A kept-alive connection may have been closed before the request reached the server: then the flight goes once
        more, on a new one.
        """
        flight = connection.flight
        if flight is not None and connection.reused and flight.untouched():
            self._again(connection, flight)
            return None
        self.drop(connection)
        return flight

    def abandon(self, flight: Flight, now: int) -> None:
        """Closes the connection of a flight that we end ourselves."""
        connection = self._carriers.get(flight)
        if connection is not None:
            self.drop(connection)
        self.opening.leave(flight, now)

    def idle_or_large(self, now: int) -> list[tuple[Flight, WireEnd]]:
        """Flights of which nothing has come for too long since they began, or too much."""
        job, found = self._job, []
        for flight, connection in self._carriers.items():
            if connection.got > job.max_response_bytes:
                found.append((flight, WireEnd.TOO_LARGE))
            elif now - connection.read_ns > job.idle_timeout_ns and (
                flight.begun_ns if job.streaming else flight.received
            ):
                found.append((flight, WireEnd.TIMEOUT_IDLE))
        return found

    def forget(self, row: Row) -> None:
        """No further turn of this row's conversation is sent: closes the connection that is kept for it, if one is."""
        for idle in self._idle:
            if (connection := idle.kept_for(row)) is not None:
                self.drop(connection)

    def drop(self, connection: Connection) -> None:
        """Closes a connection and forgets it; its flight is the caller's to end."""
        if connection.flight is None:
            self._idle[connection.target].remove(connection)
        else:
            del self._carriers[connection.flight]
        self._shut(connection)

    def _shut(self, connection: Connection) -> None:
        self.by_fd[connection.fd] = None
        self.opening.forget(connection)
        self.waiting_fds.discard(connection.fd)
        self._poller.unregister(connection.fd)
        connection.sock.close()
        connection.release()
