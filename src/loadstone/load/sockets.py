"""Sockets as the load path wants them: non-blocking, without delay, dated by the kernel where it can."""

from __future__ import annotations

import errno
import socket
import ssl
from typing import Any

from loadstone.clock import SO_TIMESTAMPNS
from loadstone.load.job import TlsJob


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


def tls_context(job: TlsJob) -> ssl.SSLContext:
    """A client context as `job` says; HTTP/1.1 only. Raises `OSError` (`ssl.SSLError`) for a file of no use."""
    context = ssl.create_default_context(cafile=job.ca)
    context.set_alpn_protocols(["http/1.1"])
    context.options |= ssl.OP_NO_RENEGOTIATION
    if not job.verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if job.client_certificate:
        # A password is never asked for: an empty one makes an encrypted key an error.
        context.load_cert_chain(job.client_certificate, job.client_key, password="")
    return context


def resolve(host: str, port: int) -> list[tuple[int, tuple[Any, ...]]]:
    """The addresses of a host, in the system's order: (family, address) pairs. Raises `OSError`."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys((int(family), address) for family, _, _, _, address in found))
