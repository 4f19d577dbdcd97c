"""Reaching a server before the run: its address, the proxy on the way, TLS; and each way to fail in one sentence."""

from __future__ import annotations

import errno
import re
import socket
import ssl
from typing import Any, NamedTuple

from loadstone.config import EndpointConfig, hide, secrets
from loadstone.errors import TargetError
from loadstone.load import once, sockets
from loadstone.load.job import TlsJob
from loadstone.load.once import HandshakeTimeout, ProxyRefusal, Way
from loadstone.terminal import printable
from loadstone.wire import proxy as proxies
from loadstone.wire.proxy import Proxy
from loadstone.wire.url import Target

_OTHER_NAME = {62, 64}
"""OpenSSL's numbers for a certificate that is for another host or address."""
_ADVICE = {
    errno.ECONNREFUSED: "Is {what} running there?",
    errno.ENETUNREACH: "Check the address, and the network that leads to it.",
    errno.EHOSTUNREACH: "Check the address, and the network that leads to it.",
    errno.ECONNRESET: "Is it the right port?",
}
CERTIFICATE_WANTED = "The server may want a certificate of ours, or another one: --client-certificate."
"""In TLS 1.3 a server says so after the handshake, or just closes the connection."""


class Reached(NamedTuple):
    """A server that can be reached, and how."""

    target: Target
    family: int
    address: tuple[Any, ...]
    """Of the server, or of the proxy."""
    proxy: Proxy | None = None
    tls: TlsJob | None = None
    tunnel: bytes = b""
    """The request for a tunnel through the proxy; empty without one."""


def reach(target: Target, endpoint: EndpointConfig) -> Reached:
    """The first address of `target`, or of the proxy, that leads to a connection (and a TLS handshake).

    Raises `TargetError`.
    """
    proxy = proxies.parse(endpoint.proxy) if endpoint.proxy else None
    tls = _tls(endpoint, target.host) if target.tls else None
    tunnel = proxies.tunnel(target, proxy) if proxy and target.tls else b""
    goal = Reached(target, 0, (), proxy, tls, tunnel)
    host, port = (proxy.host, proxy.port) if proxy else (target.host, target.port)
    try:
        addresses = sockets.resolve(host, port)
    except (OSError, UnicodeError) as error:
        why = getattr(error, "strerror", None) or error
        raise TargetError(
            f"cannot connect to {_place(goal)}: {why}. "
            f"Check the name in {'--proxy' if proxy else '--url'}, and that it can be looked up from here."
        ) from None
    sock, (family, address) = _connected(goal, addresses, endpoint)
    sock.close()
    return goal._replace(family=family, address=address)


def connect(reached: Reached, endpoint: EndpointConfig) -> socket.socket:
    """A new connection by the way that is known. Raises `TargetError`."""
    return _connected(reached, [(reached.family, reached.address)], endpoint)[0]


def _connected(
    goal: Reached, addresses: list[tuple[int, tuple[Any, ...]]], endpoint: EndpointConfig
) -> tuple[socket.socket, tuple[int, tuple[Any, ...]]]:
    seconds = endpoint.connect_timeout_s
    try:
        return once.connect(Way(addresses, goal.tls, goal.tunnel), seconds)
    except ProxyRefusal as error:
        raise TargetError(_of_proxy(goal, error, secrets(endpoint))) from None
    except ssl.SSLError as error:
        raise TargetError(f"{goal.target.url}: {of_tls(error)}") from None
    except HandshakeTimeout:
        raise TargetError(
            f"{goal.target.url}: TLS failed: no handshake within {seconds:g} s. Is it an https port?"
        ) from None
    except TimeoutError:
        raise TargetError(
            f"cannot connect to {_place(goal)}: no connection within {seconds:g} s. Check address and port; "
            "--connect-timeout-seconds allows more."
        ) from None
    except OSError as error:
        advice = _ADVICE.get(error.errno or 0, _ADVICE[errno.ECONNREFUSED])
        what = "the proxy" if goal.proxy else "the server"
        raise TargetError(
            f"cannot connect to {_place(goal)}: {error.strerror or error}. {advice.format(what=what)}"
        ) from None


def _place(goal: Reached) -> str:
    return f"the proxy {goal.proxy.url}" if goal.proxy else goal.target.url


def _of_proxy(goal: Reached, error: ProxyRefusal, hidden: list[str]) -> str:
    assert goal.proxy is not None
    advice = {
        407: "Give user and password: --proxy http://USER:PASSWORD@HOST:PORT.",
        403: "Ask whoever runs it to allow that host and port.",
        405: "It takes no CONNECT; is it a proxy for https?",
    }.get(error.status, "Can it reach the server?" if error.status >= 500 else "Is it an HTTP proxy?")
    said = printable(hide(str(error), hidden))[:200].rstrip(". ")
    return f"the proxy {goal.proxy.url} opens no tunnel to {goal.target.authority}: {said}. {advice}"


def of_tls(error: ssl.SSLError, agreed: bool = False) -> str:
    """What is wrong with TLS, and what to do. `agreed`: the handshake was done, as far as we could see."""
    if isinstance(error, ssl.SSLCertVerificationError):
        advice = "Name its authority with --ca, or use --insecure."
        if error.verify_code in _OTHER_NAME:
            advice = "Give the name that it is for with --server-name, or use --insecure."
        return f"TLS: {error.verify_message.rstrip('.')}. {advice}"
    words = getattr(error, "reason", None) or error.strerror or str(error)
    reason = re.sub(r" ?\(_ssl\.c:\d+\)", "", words).replace("_", " ").lower()
    advice = CERTIFICATE_WANTED if agreed else "Is it an https port?"
    if "unrecognized name" in reason:
        advice = "The server knows no such host; give another name with --server-name."
    elif "alert" in reason and ("certificate" in reason or "unknown ca" in reason or "handshake" in reason):
        advice = CERTIFICATE_WANTED
    return f"TLS failed: {reason}. {advice}"


def _tls(endpoint: EndpointConfig, host: str) -> TlsJob:
    return TlsJob(
        server_name=endpoint.server_name or host.partition("%")[0],
        verify=not endpoint.insecure,
        ca=endpoint.ca,
        client_certificate=endpoint.client_certificate,
        client_key=endpoint.client_key,
    )
