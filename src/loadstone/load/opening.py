"""Connections in the making: TCP, a proxy's tunnel, TLS; and the flights that wait for one.

Only so many are made at a time, to all targets together. A flight that the client has no descriptor or no port for
gets that of an idle connection; if there is none, it waits until there is one, first in line: that is a late request,
which the report shows, and no failed one.
"""

from __future__ import annotations

import errno
import os
import socket
import ssl
import time
from collections.abc import Sequence
from typing import Any, Protocol

from loadstone.load import sockets
from loadstone.load.connection import (
    CONNECTING,
    HANDSHAKE,
    LARGE_READ_BYTES,
    READING,
    TUNNEL,
    Connection,
)
from loadstone.load.flight import Flight
from loadstone.load.job import Job, TargetJob
from loadstone.load.limits import Limit
from loadstone.load.poller import READ, WRITE, Poller
from loadstone.load.postponed import Line, Postponed
from loadstone.recording import WireEnd
from loadstone.wire import proxy

MOST_CONNECTING = 128
"""Connections in the making at a time: as many as the shortest queues of listening servers hold."""
RETRY_NS = 5_000_000
"""What the client had none of is asked for again after so long."""
_SCARCE = {errno.EMFILE, errno.ENFILE, errno.EADDRNOTAVAIL, errno.ENOBUFS, errno.ENOMEM}
"""The client has run out of something that it will have again when another connection closes."""
_PORTS = {errno.EADDRNOTAVAIL}
"""Of these, what it has for each address of a server."""
_BLANK = b"\r\n\r\n"


class Owner(Protocol):
    """Who has the connections: what becomes of one in the making is told to it."""

    def adopt(self, sock: socket.socket, flight: Flight) -> Connection:
        """The connection that a socket on its way to the server will be."""

    def ready(self, connection: Connection, flight: Flight) -> None:
        """The server is reached: the request can go."""

    def refused(self, connection: Connection | None, flight: Flight, end: WireEnd, message: str) -> None:
        """There will be no connection."""

    def make_room(self, address: tuple[Any, ...] | None) -> bool:
        """Closes an idle connection (when a port is lacking: one to this address); False: there is none."""


class Opening:
    """The connections of a worker that are being made. `postponed` is for the loop."""

    def __init__(self, job: Job, poller: Poller, stamps: bool, owner: Owner) -> None:
        self._waiting = Postponed(len(job.targets))
        self.postponed: Line = self._waiting.line
        """Flights that wait for a connection to be opened, in the order in which they will be."""
        self.waits = self.waited_ns = 0
        """Connects for which the client had no descriptor or no port at first, and for how long any waited."""
        self.retry_ns = 0
        """When what the client has none of is asked for again; 0: nothing is lacking."""
        self._scarce_since_ns = 0
        self._making: Limit[Connection] = Limit(job.connect_timeout_ns)
        self._targets = job.targets
        self._poller = poller
        self._stamps = stamps
        self._owner = owner

    # ---- who may begin ------------------------------------------------------------------------------

    def begin(self, flight: Flight) -> None:
        """Opens a connection, or lets the flight wait behind others for one."""
        if self.postponed or len(self._making) >= MOST_CONNECTING:
            self.postpone(flight)
        else:
            self._open(flight)

    def postpone(self, flight: Flight) -> None:
        """Lets a flight wait behind the others."""
        self._waiting.join(flight)
        if self.retry_ns:
            self._note_wait(flight)

    def _note_wait(self, flight: Flight) -> None:
        self.waits += not flight.waited
        flight.waited = True

    def resume(self, now: int) -> None:
        """Goes on with the flights that wait, as far as it gets."""
        if now < self.retry_ns:
            return
        self._suffice(now)
        while self.postponed and not self.retry_ns and len(self._making) < MOST_CONNECTING:
            flight = next(iter(self.postponed))
            self._waiting.leave(flight)
            self._open(flight)

    def lines(self) -> Sequence[Line]:
        """The lines whose first flights are next to get a connection that has become free: one for each target.

        Where the client lacks something there is one for all, or else a busy target would keep what it has for ever.
        """
        return [self.postponed] if self.retry_ns else self._waiting.lines

    def leave(self, flight: Flight, now: int) -> None:
        """A flight waits no longer, if it did: it has a connection, or is ended."""
        self._waiting.leave(flight)
        if not self.postponed:
            self._suffice(now)

    def verdict(self, flight: Flight) -> tuple[WireEnd, str]:
        """What a flight ends as whose time is up while it waits: the client's fault, or the server's slowness."""
        if self.retry_ns:
            return WireEnd.CLIENT, "the client had no descriptor or no port for it within the time limit"
        return (
            WireEnd.TIMEOUT_CONNECT,
            "no connection within the time limit: others were being made before it",
        )

    def _suffice(self, now: int) -> None:
        """Nothing is lacking, as far as is known."""
        if self.retry_ns:
            self.waited_ns += now - self._scarce_since_ns
            self.retry_ns = 0

    def _lack(self, flight: Flight, now: int) -> None:
        """There is no descriptor or no port: the flight is the next one to get one."""
        self._note_wait(flight)
        self._waiting.join(flight, first=True)
        self._scarce_since_ns = now
        self.retry_ns = now + RETRY_NS
        if not flight.redirects:
            flight.connect_ns = 0

    # ---- TCP ----------------------------------------------------------------------------------------

    def _open(self, flight: Flight) -> None:
        now = time.monotonic_ns()
        if not flight.redirects:  # else the moments of the first send stay
            flight.connect_ns = now
        try:
            sock = self._socket(self._targets[flight.target])
        except OSError as error:
            if error.errno in _SCARCE:
                self._lack(flight, now)
            else:
                self._owner.refused(None, flight, _refusal(error.errno), str(error))
            return
        connection = self._owner.adopt(sock, flight)
        self._making.start(connection, now)
        self._poller.register(connection.fd, WRITE)

    def _socket(self, target: TargetJob) -> socket.socket:
        """A socket on its way to a target, if need be in the room of an idle connection. Raises `OSError`."""
        try:
            return sockets.start_connect(target.family, target.address, self._stamps)
        except OSError as error:
            near = target.address if error.errno in _PORTS else None
            if error.errno not in _SCARCE or not self._owner.make_room(near):
                raise
        return sockets.start_connect(target.family, target.address, self._stamps)

    def proceed(self, connection: Connection, flight: Flight, mask: int) -> None:
        """Goes on with what a connection in the making waits for."""
        if connection.state == CONNECTING:
            self._established(connection, flight, mask)
        elif connection.state == TUNNEL:
            self._tunnel_read(connection, flight)
        else:
            self._handshake_read(connection, flight)

    def expire(self, now: int) -> None:
        """Ends the flights whose connection has not come about in time."""
        for connection in self._making.expired(now):
            flight = connection.flight
            assert flight is not None
            words = f"no connection within {self._making.span_ns / 1e9:g} s"
            self._owner.refused(connection, flight, WireEnd.TIMEOUT_CONNECT, words)

    def forget(self, connection: Connection) -> None:
        """A connection was closed, whether it was in the making or not."""
        self._making.stop(connection)

    def _established(self, connection: Connection, flight: Flight, mask: int) -> None:
        code = connection.sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if code:
            words = f"{os.strerror(code)} ({errno.errorcode.get(code, code)})"
            self._owner.refused(connection, flight, _refusal(code), words)
        elif not mask & WRITE:
            pass  # a stale event of a descriptor that was closed and given out again in this very round
        elif tunnel := self._targets[flight.target].tunnel:
            self._ask_for_tunnel(connection, flight, tunnel)
        else:
            self._reached(connection, flight)

    # ---- a proxy ------------------------------------------------------------------------------------

    def _ask_for_tunnel(self, connection: Connection, flight: Flight, tunnel: bytes) -> None:
        connection.state = TUNNEL
        self._poller.modify(connection.fd, READ)
        try:
            connection.sock.send(tunnel)  # the first bytes on a fresh connection: there is room
        except OSError as error:
            self._owner.refused(connection, flight, WireEnd.CONNECT, f"the proxy: {error}")

    def _tunnel_read(self, connection: Connection, flight: Flight) -> None:
        """Takes the proxy's answer to CONNECT out of the socket, and nothing behind it: that is the server's."""
        try:
            waiting = connection.sock.recv(proxy.MOST_ANSWER_BYTES, socket.MSG_PEEK)
            end = (connection.opening + waiting).find(_BLANK)
            taken = len(waiting) if end < 0 else end + len(_BLANK) - len(connection.opening)
            connection.opening += connection.sock.recv(taken) if taken else b""
            if not waiting:
                raise ConnectionError("it closed the connection")
            if len(connection.opening) > proxy.MOST_ANSWER_BYTES:
                raise ConnectionError("it does not end its head")
        except BlockingIOError:
            return
        except OSError as error:
            self._owner.refused(connection, flight, WireEnd.CONNECT, f"the proxy: {error}")
            return
        if end >= 0:
            self._answered(connection, flight)

    def _answered(self, connection: Connection, flight: Flight) -> None:
        line = connection.opening.partition(b"\r\n")[0].decode("latin-1")
        connection.opening = b""
        if proxy.accepted(line):
            self._reached(connection, flight)
        else:
            self._owner.refused(connection, flight, WireEnd.CONNECT, f"the proxy said: {line}")

    # ---- TLS ----------------------------------------------------------------------------------------

    def _reached(self, connection: Connection, flight: Flight) -> None:
        """The server is at the other end of the connection."""
        now = time.monotonic_ns()
        if not flight.redirects:
            flight.tcp_ns = now
        if connection.tls is None:
            self._ready(connection, flight, now)
        else:
            connection.state = HANDSHAKE
            self._poller.modify(connection.fd, READ)
            self._handshake(connection, flight, b"")

    def _handshake_read(self, connection: Connection, flight: Flight) -> None:
        try:
            received = connection.sock.recv(LARGE_READ_BYTES)
        except BlockingIOError:
            return
        except OSError as error:
            self._owner.refused(connection, flight, WireEnd.TLS, str(error))
            return
        if received:
            self._handshake(connection, flight, received)
        else:
            words = "the server closed the connection during the handshake"
            self._owner.refused(connection, flight, WireEnd.TLS, words)

    def _handshake(self, connection: Connection, flight: Flight, received: bytes) -> None:
        tls = connection.tls
        assert tls is not None  # HANDSHAKE is a state of TLS connections only
        try:
            done = tls.handshake(received)
            if reply := tls.pending():
                connection.sock.sendall(reply)
        except (ssl.SSLError, ssl.CertificateError, OSError) as error:
            self._owner.refused(connection, flight, WireEnd.TLS, str(error))
            return
        if done:
            self._ready(connection, flight, time.monotonic_ns())

    def _ready(self, connection: Connection, flight: Flight, now: int) -> None:
        self._making.stop(connection)
        if not flight.redirects:
            flight.connected_ns = now
        connection.state = READING
        self._poller.modify(connection.fd, READ)
        self._owner.ready(connection, flight)


def _refusal(code: int | None) -> WireEnd:
    return WireEnd.REFUSED if code == errno.ECONNREFUSED else WireEnd.CONNECT
