"""Sockets as the load path wants them: non-blocking, without delay, dated by the kernel where it can."""

from __future__ import annotations

import errno
import socket
import ssl
from typing import Any

from loadstone.clock import SO_TIMESTAMPNS


def start_connect(family: int, address: tuple[Any, ...], stamps: bool) -> socket.socket:
    """A socket on its way to `address`. Raises `OSError` when it fails at once."""
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if stamps:
            sock.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        code = sock.connect_ex(address)
        if code not in (0, errno.EINPROGRESS):
            raise OSError(code, errno.errorcode.get(code, "connect"))
    except BaseException:
        sock.close()
        raise
    return sock


def tls_context(verify: bool) -> ssl.SSLContext:
    """A client context with the system's certificate authorities; HTTP/1.1 only."""
    context = ssl.create_default_context()
    context.set_alpn_protocols(["http/1.1"])
    if not verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def resolve(host: str, port: int) -> list[tuple[int, tuple[Any, ...]]]:
    """The addresses of a host, in the system's order: (family, address) pairs. Raises `OSError`."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys((int(family), address) for family, _, _, _, address in found))
