"""A worker's connections: opening them (TCP, proxy, TLS), sending on them, keeping them alive, closing them.

Reading is the loop's own business. What happens to a flight is told through two calls: `started` when its first
byte is about to go, `ended` when there is no way on. When it was written is noted on the flight itself.

Only so many connections are being made at a time. One that the client has no descriptor or no port for waits until
there is one: that is a late request, which the report shows, and no failed one.
"""

from __future__ import annotations

import errno
import os
import socket
import ssl
import time
from collections import OrderedDict
from collections.abc import Callable

from httptools import HttpParserError, HttpParserUpgrade

from loadstone.load import sockets
from loadstone.load.connection import (
    CONNECTING,
    HANDSHAKE,
    LARGE_READ_BYTES,
    MOST_HEAD_BYTES,
    READING,
    SENDING,
    TUNNEL,
    Connection,
    Streaming,
)
from loadstone.load.flight import Flight
from loadstone.load.job import Job
from loadstone.load.limits import Limit
from loadstone.load.poller import READ, WRITE, Poller
from loadstone.load.pool import pool
from loadstone.load.tls import Tls
from loadstone.recording import RESENT, WireEnd
from loadstone.wire.redirect import moved

Ended = Callable[[Flight, WireEnd, int, str], None]
Started = Callable[[Connection, Flight, int], None]

MOST_CONNECTING = 128
"""Connections in the making at a time: as many as the shortest queues of listening servers hold."""
_SCARCE = {errno.EMFILE, errno.ENFILE, errno.EADDRNOTAVAIL, errno.ENOBUFS, errno.ENOMEM}
"""The client has run out of something that it will have again when another connection closes."""
RETRY_NS = 5_000_000
"""Then it is tried again."""
_FOLLOWED = {307, 308}
"""Redirects that keep method and body."""


class Links:
    """All connections of a worker. `by_fd`, `waiting_fds` and `postponed` are for the loop."""

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
        self.waits = self.waited_ns = 0
        """Connects for which the client had no descriptor or no port at first, and for how long any waited."""
        self._carriers: dict[Flight, Connection] = {}
        self._idle = pool(job.reuse)
        self.postponed: OrderedDict[Flight, None] = OrderedDict()
        """Flights that wait for a connection to be opened, in the order in which they will be."""
        self._scarce_since_ns = self._retry_ns = 0
        self._connecting: Limit[Connection] = Limit(job.connect_timeout_ns)
        self._job = job
        self._poller = poller
        self._stamps = stamps
        self._begun, self._stream_ended = predicates
        self._started = started
        self._ended = ended
        self._context = sockets.tls_context(job.tls) if job.tls else None

    # ---- opening ----------------------------------------------------------------------------------

    def carry(self, flight: Flight) -> None:
        """Puts a flight on its way, on a kept-alive connection when there is one that can take it."""
        while (connection := self._idle.take(flight)) is not None:
            if connection.is_quiet():
                connection.renew(flight)
                self._carriers[flight] = connection
                self._send(connection, flight)
                return
            self._shut(connection)
        self._connect(flight)

    def _connect(self, flight: Flight) -> None:
        """Opens a connection, or lets the flight wait behind others for one."""
        if self.postponed or len(self._connecting) >= MOST_CONNECTING:
            self.postponed[flight] = None
        else:
            self._open(flight)

    def open_postponed(self, now: int) -> None:
        """Goes on with the flights that wait for a connection, as far as it gets."""
        if now < self._retry_ns:
            return
        if self._retry_ns:
            self.waited_ns += now - self._scarce_since_ns
            self._retry_ns = 0
        while self.postponed and not self._retry_ns and len(self._connecting) < MOST_CONNECTING:
            self._open(self.postponed.popitem(last=False)[0])

    def is_starved(self, flight: Flight) -> bool:
        """Whether it waits for a descriptor or a port that the client does not have."""
        return self._retry_ns > 0 and flight in self.postponed

    def _open(self, flight: Flight) -> None:
        flight.connect_ns = time.monotonic_ns()
        try:
            sock = sockets.start_connect(self._job.family, self._job.address, self._stamps)
        except OSError as error:
            if error.errno in _SCARCE:
                self._postpone(flight)
            else:
                end = WireEnd.REFUSED if error.errno == errno.ECONNREFUSED else WireEnd.CONNECT
                self._ended(flight, end, time.monotonic_ns(), str(error))
            return
        connection = self._connection(sock, flight)
        self._carriers[flight] = connection
        if connection.fd >= len(self.by_fd):
            self.by_fd += [None] * (connection.fd + 1)
        self.by_fd[connection.fd] = connection
        self._connecting.start(connection, flight.connect_ns)
        self._poller.register(connection.fd, WRITE)

    def _postpone(self, flight: Flight) -> None:
        """There is no descriptor or no port: the flight is the next one to get one."""
        self.waits += not flight.waited
        flight.waited = True
        self.postponed[flight] = None
        self.postponed.move_to_end(flight, last=False)
        self._scarce_since_ns = flight.connect_ns
        self._retry_ns = flight.connect_ns + RETRY_NS
        flight.connect_ns = 0

    def _connection(self, sock: socket.socket, flight: Flight) -> Connection:
        tls = Tls(self._context, self._job.tls.server_name) if self._context and self._job.tls else None
        if self._job.streaming:
            return Streaming(sock, flight, tls, self._begun, self._stream_ended)
        return Connection(sock, flight, tls)

    def proceed(self, connection: Connection, mask: int) -> bool:
        """Goes on with connecting, the handshake or sending; True when there may be an answer to read."""
        flight = connection.flight
        assert flight is not None  # only a connection in use is in another state than READING
        if connection.state == CONNECTING:
            self._established(connection, flight, mask)
        elif connection.state == TUNNEL:
            self._tunnel_read(connection, flight)
        elif connection.state == HANDSHAKE:
            self._handshake_read(connection, flight)
        elif mask & ~WRITE:
            return True  # an answer before the request is out: were it written first, a reset would lose the answer
        else:
            self._write(connection, flight)
        return False

    def _established(self, connection: Connection, flight: Flight, mask: int) -> None:
        code = connection.sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if code:
            end = WireEnd.REFUSED if code == errno.ECONNREFUSED else WireEnd.CONNECT
            self._refused(connection, flight, end, f"{os.strerror(code)} ({errno.errorcode.get(code, code)})")
        elif not mask & WRITE:
            pass  # a stale event of a descriptor that was closed and given out again in this very round
        elif self._job.tunnel:
            connection.state = TUNNEL
            self._poller.modify(connection.fd, READ)
            connection.sock.send(
                self._job.tunnel
            )  # the first bytes on a fresh connection: there is room for them
        else:
            self._reached(connection, flight)

    def _ask_for_tunnel(self, connection: Connection, flight: Flight) -> None:
        connection.state = TUNNEL
        self._poller.modify(connection.fd, READ)
        try:
            connection.sock.send(self._job.tunnel)  # the first bytes on a fresh connection: there is room for them
        except OSError as error:
            self._refused(connection, flight, WireEnd.CONNECT, f"the proxy: {error}")

    def _tunnel_read(self, connection: Connection, flight: Flight) -> None:
        """Reads the proxy's answer to CONNECT, byte after byte: what follows it is the server's."""
        try:
            while not connection.opening.endswith(b"\r\n\r\n"):
                received = connection.sock.recv(1)
                connection.opening += received
                if not received or len(connection.opening) > MOST_HEAD_BYTES:
                    raise ConnectionError(
                        "it closed the connection" if not received else "it does not end its head"
                    )
        except BlockingIOError:
            return
        except OSError as error:
            self._refused(connection, flight, WireEnd.CONNECT, f"the proxy: {error}")
            return
        line = connection.opening.partition(b"\r\n")[0].decode("latin-1")
        connection.opening = b""
        if line.split(" ")[1:2] in (["200"], ["201"], ["204"]):
            self._reached(connection, flight)
        else:
            self._refused(connection, flight, WireEnd.CONNECT, f"the proxy said: {line}")

    def _reached(self, connection: Connection, flight: Flight) -> None:
        """The server is at the other end of the connection."""
        if connection.tls is None:
            self._ready(connection, flight)
        else:
            connection.state = HANDSHAKE
            self._poller.modify(connection.fd, READ)
            self._handshake(connection, connection.tls, flight, b"")

    def _handshake_read(self, connection: Connection, flight: Flight) -> None:
        assert connection.tls is not None  # HANDSHAKE is a state of TLS connections only
        try:
            received = connection.sock.recv(LARGE_READ_BYTES)
        except BlockingIOError:
            return
        except OSError as error:
            self._refused(connection, flight, WireEnd.TLS, str(error))
            return
        if received:
            self._handshake(connection, connection.tls, flight, received)
        else:
            self._refused(
                connection, flight, WireEnd.TLS, "the server closed the connection during the handshake"
            )

    def _handshake(self, connection: Connection, tls: Tls, flight: Flight, received: bytes) -> None:
        try:
            done = tls.handshake(received)
            if reply := tls.pending():
                connection.sock.sendall(reply)
        except (ssl.SSLError, ssl.CertificateError, OSError) as error:
            self._refused(connection, flight, WireEnd.TLS, str(error))
            return
        if done:
            self._ready(connection, flight)

    def _refused(self, connection: Connection, flight: Flight, end: WireEnd, message: str) -> None:
        self.drop(connection)
        self._ended(flight, end, time.monotonic_ns(), message)

    def _ready(self, connection: Connection, flight: Flight) -> None:
        self._connecting.stop(connection)
        self.connects += 1
        flight.connected_ns = time.monotonic_ns()
        connection.state = READING
        self._poller.modify(connection.fd, READ)
        self._send(connection, flight)

    # ---- sending ----------------------------------------------------------------------------------

    def _send(self, connection: Connection, flight: Flight) -> None:
        """Gives the request to the kernel; `sent` is the moment before, of a redirected one that of the first time."""
        payload = flight.payload
        connection.outgoing = payload if connection.tls is None else connection.tls.encrypt(payload)
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
        flight.written_ns = time.monotonic_ns()
        connection.outgoing = b""
        if connection.state == SENDING:
            connection.state = READING
            self._poller.modify(connection.fd, READ)

    # ---- the ends of connections --------------------------------------------------------------------

    def complete(self, connection: Connection, flight: Flight, now: int) -> None:
        """The answer is whole: the connection is kept if both sides can go on with it."""
        target = self._moved_to(connection, flight) if flight.status in _FOLLOWED else None
        usable = connection.keeps_alive and not connection.outgoing and not connection.strays
        if usable and self._idle.keep(connection, flight):
            self.waiting_fds.discard(connection.fd)
            connection.flight = None
            del self._carriers[flight]
        else:
            self.drop(connection)
        if target is None:
            self._ended(flight, WireEnd.COMPLETE, now, "")
        else:
            flight.redirect(target)
            self.carry(flight)

    def _moved_to(self, connection: Connection, flight: Flight) -> bytes | None:
        """The request as it goes to where a redirect points; None when it is not to be followed."""
        if flight.redirects or not flight.payload:
            return None
        return moved(flight.payload, connection.opening, self._job.authority, tls=self._job.tls is not None)

    def unframed(self, connection: Connection, flight: Flight, now: int, error: Exception) -> None:
        """The framer refused what came, or our own look at it failed.

        After a complete message the former is only a reason to close. Where the answer should begin on a kept-alive
        connection, it is most likely the rest of the one before, which is not this flight's fault.
        """
        if not isinstance(error, HttpParserError | HttpParserUpgrade):
            self.drop(connection)
            self._ended(flight, WireEnd.CLIENT, now, repr(error))
        elif connection.complete:
            self.drop(connection)
            self._ended(flight, WireEnd.COMPLETE, now, "")
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
        flight.sending = RESENT
        self._connect(flight)

    def closed(self, connection: Connection, now: int) -> None:
        """The server closed the connection."""
        flight = self._bereft(connection)
        if flight is None:
            return
        if flight.received and connection.ends_with_close():
            self._ended(flight, WireEnd.COMPLETE, now, "")
        else:
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

    def abandon(self, flight: Flight) -> None:
        """Closes the connection of a flight that we end ourselves."""
        connection = self._carriers.get(flight)
        if connection is not None:
            self.drop(connection)
        self.postponed.pop(flight, None)

    def expire(self, now: int) -> None:
        """Ends the flights whose connection has not come about in time."""
        for connection in self._connecting.expired(now):
            flight = connection.flight
            assert flight is not None
            words = f"no connection within {self._connecting.span_ns / 1e9:g} s"
            self._refused(connection, flight, WireEnd.TIMEOUT_CONNECT, words)

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

    def drop(self, connection: Connection) -> None:
        """Closes a connection and forgets it; its flight is the caller's to end."""
        if connection.flight is None:
            self._idle.remove(connection)
        else:
            del self._carriers[connection.flight]
        self._shut(connection)

    def _shut(self, connection: Connection) -> None:
        self.by_fd[connection.fd] = None
        self._connecting.stop(connection)
        self.waiting_fds.discard(connection.fd)
        self._poller.unregister(connection.fd)
        connection.sock.close()
        connection.release()
