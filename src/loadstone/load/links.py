"""A worker's connections: opening them (TCP, TLS), sending on them, keeping them alive, closing them.

Reading is the loop's own business. What happens to a flight is told through two calls: `started` when its first
byte is about to go, `ended` when there is no way on. When it was written is noted on the flight itself.
"""

from __future__ import annotations

import errno
import os
import socket
import ssl
import time
from collections.abc import Callable

from httptools import HttpParserError, HttpParserUpgrade

from loadstone.load import sockets
from loadstone.load.connection import (
    CONNECTING,
    HANDSHAKE,
    LARGE_READ_BYTES,
    READING,
    SENDING,
    Connection,
    Streaming,
)
from loadstone.load.flight import Flight
from loadstone.load.job import Job
from loadstone.load.limits import Limit
from loadstone.load.poller import READ, WRITE, Poller
from loadstone.load.tls import Tls
from loadstone.recording import WireEnd

Ended = Callable[[Flight, WireEnd, int, str], None]
Started = Callable[[Connection, Flight, int], None]

_OUR_ERRNOS = {errno.EMFILE, errno.ENFILE, errno.EADDRNOTAVAIL, errno.ENOBUFS, errno.ENOMEM}


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
        self._idle: list[Connection] = []
        self._connecting: Limit[Connection] = Limit(job.connect_timeout_ns)
        self._job = job
        self._poller = poller
        self._stamps = stamps
        self._begun, self._stream_ended = predicates
        self._started = started
        self._ended = ended
        self._context = sockets.tls_context(job.tls.verify) if job.tls else None

    # ---- opening ----------------------------------------------------------------------------------

    def carry(self, flight: Flight) -> None:
        """Puts a flight on its way, on a kept-alive connection when there is one."""
        if not self._idle:
            self._open(flight)
            return
        connection = self._idle.pop()
        connection.renew(flight)
        self._carriers[flight] = connection
        self._send(connection, flight)

    def _open(self, flight: Flight) -> None:
        flight.connect_ns = time.monotonic_ns()
        try:
            sock = sockets.start_connect(self._job.family, self._job.address, self._stamps)
        except OSError as error:
            end = WireEnd.CLIENT if error.errno in _OUR_ERRNOS else WireEnd.CONNECT
            self._ended(flight, end, time.monotonic_ns(), str(error))
            return
        connection = self._connection(sock, flight)
        self._carriers[flight] = connection
        if connection.fd >= len(self.by_fd):
            self.by_fd += [None] * (connection.fd + 1)
        self.by_fd[connection.fd] = connection
        self._connecting.start(connection, flight.connect_ns)
        self._poller.register(connection.fd, WRITE)

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
            self._refused(connection, flight, f"{os.strerror(code)} ({errno.errorcode.get(code, code)})")
        elif not mask & WRITE:
            pass  # a stale event of a descriptor that was closed and given out again in this very round
        elif connection.tls is None:
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
            self._refused(connection, flight, f"TLS: {error}")
            return
        if received:
            self._handshake(connection, connection.tls, flight, received)
        else:
            self._refused(connection, flight, "TLS: the server closed the connection during the handshake")

    def _handshake(self, connection: Connection, tls: Tls, flight: Flight, received: bytes) -> None:
        try:
            done = tls.handshake(received)
            if reply := tls.pending():
                connection.sock.sendall(reply)
        except (ssl.SSLError, ssl.CertificateError, OSError) as error:
            self._refused(connection, flight, f"TLS: {error}")
            return
        if done:
            self._ready(connection, flight)

    def _refused(self, connection: Connection, flight: Flight, message: str) -> None:
        self.drop(connection)
        self._ended(flight, WireEnd.CONNECT, time.monotonic_ns(), message)

    def _ready(self, connection: Connection, flight: Flight) -> None:
        self._connecting.stop(connection)
        self.connects += 1
        flight.connected_ns = time.monotonic_ns()
        connection.state = READING
        self._poller.modify(connection.fd, READ)
        self._send(connection, flight)

    # ---- sending ----------------------------------------------------------------------------------

    def _send(self, connection: Connection, flight: Flight) -> None:
        """Gives the request to the kernel; `sent` is the moment before."""
        payload = flight.payload
        connection.outgoing = payload if connection.tls is None else connection.tls.encrypt(payload)
        flight.sent_ns = time.monotonic_ns()
        self._started(connection, flight, flight.sent_ns)
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
        if connection.keeps_alive and not connection.outgoing:
            self.waiting_fds.discard(connection.fd)
            connection.flight = None
            del self._carriers[flight]
            self._idle.append(connection)
        else:
            self.drop(connection)
        self._ended(flight, WireEnd.COMPLETE, now, "")

    def unframed(self, connection: Connection, flight: Flight, now: int, error: Exception) -> None:
        """The framer refused what came, or our own look at it failed.

        After a complete message the former is only a reason to close.
        """
        end, message = WireEnd.PROTOCOL, str(error) or type(error).__name__
        if not isinstance(error, HttpParserError | HttpParserUpgrade):
            end, message = WireEnd.CLIENT, repr(error)
        elif connection.complete:
            end, message = WireEnd.COMPLETE, ""
        self.drop(connection)
        self._ended(flight, end, now, message)

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
        self.drop(connection)
        if flight is not None and connection.reused and flight.untouched():
            flight.retries += 1
            self._open(flight)
            return None
        return flight

    def abandon(self, flight: Flight) -> None:
        """Closes the connection of a flight that we end ourselves."""
        connection = self._carriers.get(flight)
        if connection is not None:
            self.drop(connection)

    def expire(self, now: int) -> None:
        """Ends the flights whose connection has not come about in time."""
        for connection in self._connecting.expired(now):
            flight = connection.flight
            assert flight is not None
            self._refused(connection, flight, f"no connection within {self._connecting.span_ns / 1e9:g} s")

    def drop(self, connection: Connection) -> None:
        """Closes a connection and forgets it; its flight is the caller's to end."""
        self.by_fd[connection.fd] = None
        self._connecting.stop(connection)
        self.waiting_fds.discard(connection.fd)
        if connection.flight is None:
            self._idle.remove(connection)
        else:
            del self._carriers[connection.flight]
        self._poller.unregister(connection.fd)
        connection.sock.close()
        connection.release()
