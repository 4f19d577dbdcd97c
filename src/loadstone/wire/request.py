"""The head of a request: everything but the id and the length, which differ from one to the next.

The head may hold a key, so it goes to workers over their pipe and never into a file.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from loadstone import __version__
from loadstone.errors import UsageError
from loadstone.wire.proxy import Proxy
from loadstone.wire.url import Target

OWN = frozenset({"host", "content-length", "transfer-encoding", "connection", "x-request-id"})
"""Headers that belong to the framing or to the join with the server's log; a user may not set them."""
PROXY = frozenset({"proxy-authorization", "proxy-connection"})
"""Headers that are meant for a proxy, which TLS would carry past it."""

_NAME = re.compile(r"[!#$%&'*+.^_`|~\w-]+", re.ASCII)


def head(
    target: Target,
    path: str,
    *,
    streaming: bool,
    api_key: str | None,
    headers: Sequence[str] = (),
    method: str = "POST",
    proxy: Proxy | None = None,
    closes: bool = False,
) -> bytes:
    """The head of a request up to the value of `X-Request-ID`.

    `headers` are NAME:VALUE and replace ours of the same name. Compression is refused, since it would make
    tokens arrive in bursts. A `proxy` is told the whole address, and who we are, unless TLS hides the request
    from it. `closes` asks the server to close after its answer, so that the port's rest is on its side. Raises `UsageError` for a malformed header.
    """
    fields = {
        "user-agent": ("User-Agent", f"loadstone/{__version__}"),
        "accept": ("Accept", "text/event-stream" if streaming else "application/json"),
        "accept-encoding": ("Accept-Encoding", "identity"),
        "content-type": ("Content-Type", "application/json"),
    }
    if api_key:
        fields["authorization"] = ("Authorization", f"Bearer {api_key}")
    for header in headers:
        name, value = parse_header(header)
        fields[name.lower()] = (name, value)
    if closes:
        fields["connection"] = ("Connection", "close")
    if proxy is not None and not target.tls:
        path = target.origin + path
        if proxy.authorization:
            fields["proxy-authorization"] = ("Proxy-Authorization", proxy.authorization)
    lines = [f"{method} {path} HTTP/1.1", f"Host: {target.authority}"]
    lines += [f"{name}: {value}" for name, value in fields.values()]
    try:
        return ("\r\n".join(lines) + "\r\nX-Request-ID: ").encode("latin-1")
    except UnicodeEncodeError as error:
        raise UsageError(f"request head: {error.object[error.start]!r} is not allowed in HTTP.") from None


def parse_header(header: str) -> tuple[str, str]:
    """Name and value of a `NAME:VALUE`. Raises `UsageError`, without showing the value (it may be a key)."""
    name, colon, value = header.partition(":")
    name, value = name.strip(), value.strip()
    if not colon:
        raise UsageError("endpoint.headers: a header without a colon; write NAME:VALUE.")
    if not name.isascii() or not _NAME.fullmatch(name):
        raise UsageError(
            "endpoint.headers: what stands before the colon is no header's name; write NAME:VALUE."
        )
    if any((ord(char) < 32 and char != "\t") or ord(char) == 127 for char in value):
        raise UsageError(f"endpoint.headers: {name!r} holds a control character.")
    if any(ord(char) > 255 for char in value):
        raise UsageError(f"endpoint.headers: {name!r} holds a character that HTTP does not allow.")
    if name.lower() in OWN:
        raise UsageError(f"endpoint.headers: {name} is set by loadstone itself.")
    if name.lower() in PROXY:
        raise UsageError(
            f"endpoint.headers: {name} is for a proxy; give it as --proxy http://USER:PASSWORD@HOST:PORT."
        )
    return name, value


def tail(request_id: str, body: bytes) -> bytes:
    """What follows the head: the id, the length and the body."""
    return b"%s\r\nContent-Length: %d\r\n\r\n%s" % (request_id.encode("ascii"), len(body), body)
