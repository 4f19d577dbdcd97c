"""One request, blocking, apart from any load: for the preflight and for asking the server who it is."""

from __future__ import annotations

import socket
import ssl
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import httptools

from loadstone.load import sockets
from loadstone.load.job import TlsJob
from loadstone.load.limits import LINGER_NS
from loadstone.wire.proxy import MOST_ANSWER_BYTES, accepted

MAX_BYTES = 16 << 20
_MARK_BYTES = 64
"""Longer than any end mark, which two reads may share."""


class ProxyRefusal(OSError):
    """The proxy opens no tunnel; the text is what it answered, `status` its HTTP status, 0 without one."""

    def __init__(self, text: str, status: int = 0) -> None:
        super().__init__(text)
        self.status = status


class HandshakeTimeout(TimeoutError):
    """Connected, but TLS was not agreed on in time."""


class Way(NamedTuple):
    """How to get to a server: what a worker is told of it, with every address that may do."""

    addresses: list[tuple[int, tuple[Any, ...]]]
    """(family, address) of the server, or of the proxy that leads to it."""
    tls: TlsJob | None = None
    tunnel: bytes = b""
    """A whole CONNECT request; empty without a tunnel."""


class Exchange(NamedTuple):
    """What came back, head and framing included, and how long it took."""

    raw: bytes
    complete: bool
    latency_ns: int


class _Framing:
    """Notes the end of the answer."""

    def __init__(self) -> None:
        self.parser: Any = httptools.HttpResponseParser(self)
        self.done = False

    def on_message_complete(self) -> None:
        """A 1xx is not the answer."""
        self.done = self.parser.get_status_code() >= 200


def connect(way: Way, timeout_s: float) -> tuple[socket.socket, tuple[int, tuple[Any, ...]]]:
    """A connected socket and the address that answered, the first that does.

    Raises `OSError`; what is wrong with proxy or TLS (`ProxyRefusal`, `ssl.SSLError`, `HandshakeTimeout`) is not
    tried at another address.
    """
    last: OSError = OSError("the name has no address")
    for family, address in way.addresses:
        try:
            sock = socket.socket(family, socket.SOCK_STREAM)
        except OSError as error:
            last = error
            continue
        sock.settimeout(timeout_s)
        try:
            sock.connect(address)
            return _secured(sock, way, time.monotonic_ns() + round(timeout_s * 1e9)), (family, address)
        except (ProxyRefusal, ssl.SSLError, HandshakeTimeout):
            sock.close()
            raise
        except OSError as error:
            sock.close()
            last = error
    raise last


def _secured(sock: socket.socket, way: Way, deadline: int) -> socket.socket:
    if way.tunnel:
        _dig(sock, way.tunnel, deadline)
    if way.tls is None:
        return sock
    try:
        _allow(sock, deadline)
        return sockets.tls_context(way.tls).wrap_socket(sock, server_hostname=way.tls.server_name)
    except TimeoutError:
        raise HandshakeTimeout("no TLS handshake") from None


def _dig(sock: socket.socket, tunnel: bytes, deadline: int) -> None:
    """Has the proxy connect us to the server; every byte after its answer is the server's."""
    sock.sendall(tunnel)
    head = bytearray()
    while not head.endswith(b"\r\n\r\n") and len(head) < MOST_ANSWER_BYTES:
        try:
            _allow(sock, deadline)
            byte = sock.recv(1)
        except TimeoutError:
            raise ProxyRefusal("no answer in time") from None
        if not byte:
            break
        head += byte
    first = head.partition(b"\r\n")[0].decode("latin-1")
    version, _, status = first.partition(" ")
    if not version.startswith("HTTP/1.") or not status[:3].isdecimal():
        raise ProxyRefusal("it closed the connection" if not head else "its answer is not HTTP/1.1")
    if not accepted(first) or not head.endswith(b"\r\n\r\n"):
        raise ProxyRefusal(f"HTTP {status}", int(status[:3]))


def exchange(
    sock: socket.socket, request: bytes, timeout_s: float, ended: Callable[[bytes], bool] | None = None
) -> Exchange:
    """Sends `request` and reads until its answer ends, the server closes, or the time is up.

    When `ended` finds a stream's end mark, the end of the HTTP message is awaited for a moment only, as a
    worker does. A reset after the server has spoken takes nothing back of what it said. Raises `OSError`.
    """
    started = time.monotonic_ns()
    deadline = started + round(timeout_s * 1e9)
    sock.settimeout(timeout_s)
    sock.sendall(request)
    framing = _Framing()
    received = bytearray()
    marked = False
    while not framing.done and len(received) < MAX_BYTES:
        try:
            _allow(sock, deadline)
            data = sock.recv(65536)
        except TimeoutError:
            if marked:
                break
            raise TimeoutError(f"no answer within {timeout_s:g} s") from None
        except (ConnectionError, ssl.SSLError):
            if received:
                break
            raise
        if not data:
            break
        received += data
        if ended is not None and not marked and ended(bytes(received[-len(data) - _MARK_BYTES :])):
            marked = True
            deadline = min(deadline, time.monotonic_ns() + LINGER_NS)
        try:
            framing.parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade):
            break
    return Exchange(bytes(received), framing.done or marked, time.monotonic_ns() - started)


def _allow(sock: socket.socket, deadline: int) -> None:
    """Gives the socket's next call what is left of the time. Raises `TimeoutError` when that is nothing: also when the
    other side never pauses.
    """
    left_ns = deadline - time.monotonic_ns()
    if left_ns <= 0:
        raise TimeoutError
    sock.settimeout(left_ns / 1e9)
