"""One request, blocking, apart from any load: for the preflight and for asking the server who it is."""

from __future__ import annotations

import socket
import ssl
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import httptools

from loadstone.load import sockets
from loadstone.load.limits import LINGER_NS
from loadstone.wire.url import Target

MAX_BYTES = 16 << 20
_MARK_BYTES = 64
"""Longer than any end mark, which two reads may share."""


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


def connect(
    target: Target, addresses: list[tuple[int, tuple[Any, ...]]], timeout_s: float, verify: bool
) -> tuple[socket.socket, tuple[int, tuple[Any, ...]]]:
    """A connected socket and the address that answered, the first of `addresses` that does. Raises `OSError`."""
    last: OSError = OSError("the name has no address")
    for family, address in addresses:
        try:
            sock = socket.socket(family, socket.SOCK_STREAM)
        except OSError as error:
            last = error
            continue
        sock.settimeout(timeout_s)
        try:
            sock.connect(address)
            if target.tls:
                sock = sockets.tls_context(verify).wrap_socket(sock, server_hostname=target.host)
        except OSError as error:
            sock.close()
            last = error
            if isinstance(error, ssl.SSLError):
                break
        else:
            return sock, (family, address)
    raise last


def exchange(
    sock: socket.socket, request: bytes, timeout_s: float, ended: Callable[[bytes], bool] | None = None
) -> Exchange:
    """Sends `request` and reads until its answer ends, the server closes, or the time is up.

    When `ended` finds a stream's end mark, the end of the HTTP message is awaited for a moment only, as a
    worker does. A reset after the server has spoken takes nothing back of what it said. Raises `OSError`.
    """
    started = time.monotonic_ns()
    deadline = started + round(timeout_s * 1e9)
    sock.sendall(request)
    framing = _Framing()
    received = bytearray()
    marked = False
    while not framing.done and len(received) < MAX_BYTES:
        try:
            data = _read(sock, deadline)
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


def _read(sock: socket.socket, deadline: int) -> bytes:
    """What comes next. Raises `TimeoutError` from `deadline` on, also when the server never pauses."""
    left_ns = deadline - time.monotonic_ns()
    if left_ns <= 0:
        raise TimeoutError
    sock.settimeout(left_ns / 1e9)
    return sock.recv(65536)
