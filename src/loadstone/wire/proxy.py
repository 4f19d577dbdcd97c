"""What an HTTP proxy has to be told: by which address a server is asked through it. Pure text; connects nothing."""

from __future__ import annotations

import re
from binascii import b2a_base64
from typing import NamedTuple
from urllib.parse import unquote_to_bytes, urlsplit

from loadstone import __version__
from loadstone.errors import UsageError
from loadstone.wire.url import USERINFO, Target, ascii_host, bracketed

_ACCEPTED = re.compile(r"HTTP/1\.\d 2\d\d(?!\S)")


class Proxy(NamedTuple):
    """Where it listens. `userinfo` is `USER:PASSWORD` as it was written, empty without one."""

    host: str
    port: int
    userinfo: str = ""

    @property
    def url(self) -> str:
        """Its address, without user and password."""
        return f"http://{bracketed(self.host)}:{self.port}"

    @property
    def authorization(self) -> str:
        """The value of Proxy-Authorization; empty without a user."""
        if not self.userinfo:
            return ""
        user, _, password = self.userinfo.partition(":")
        pair = unquote_to_bytes(user) + b":" + unquote_to_bytes(password)
        return f"Basic {b2a_base64(pair, newline=False).decode()}"


def parse(address: str) -> Proxy:
    """The proxy that an address means. Raises `UsageError`, which does not show it: it may hold a password."""
    advice = "give http://HOST:PORT, with USER:PASSWORD@ before the host if the proxy asks for them."
    text = address.strip()
    try:
        parts = urlsplit(text if "://" in text else f"http://{text}")
        host, port = ascii_host(parts.hostname or ""), parts.port
    except ValueError:
        raise UsageError(f"endpoint.proxy: is not an address; {advice}") from None
    if parts.scheme != "http":
        raise UsageError(f"endpoint.proxy: only proxies that are spoken to in plain HTTP are known; {advice}")
    if not host or not port:
        raise UsageError(f"endpoint.proxy: has no {'port' if host else 'host'}; {advice}")
    if parts.path.strip("/") or parts.query or parts.fragment:
        raise UsageError(f"endpoint.proxy: has more than host and port; {advice}")
    if any(char.isspace() or not char.isprintable() for char in text):
        raise UsageError(f"endpoint.proxy: holds a space or a control character; {advice}")
    found = USERINFO.match(text)
    return Proxy(host, port, found[2] if found else "")


def tunnel(target: Target, proxy: Proxy) -> bytes:
    """The request for a tunnel to `target`, to be sent before TLS."""
    where = f"{bracketed(target.host)}:{target.port}"
    lines = [f"CONNECT {where} HTTP/1.1", f"Host: {where}", f"User-Agent: loadstone/{__version__}"]
    if proxy.authorization:
        lines.append(f"Proxy-Authorization: {proxy.authorization}")
    return ("\r\n".join(lines) + "\r\n\r\n").encode("ascii")


MOST_ANSWER_BYTES = 64 << 10
"""The head of an answer to CONNECT may be so long."""


def accepted(line: bytes | str) -> bool:
    """Whether the first line of an answer to CONNECT opens the tunnel: any 2xx does."""
    text = line if isinstance(line, str) else line.decode("latin-1")
    return _ACCEPTED.match(text) is not None
