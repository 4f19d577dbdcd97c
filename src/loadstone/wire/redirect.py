"""Where a redirect leads: the same request to another path of the same server, or nowhere we go."""

from __future__ import annotations

import re
from urllib.parse import urljoin, urlsplit

from loadstone.wire.url import is_path

FOLLOWED = frozenset({307, 308})
"""Redirects that keep method and body."""

_LOCATION = re.compile(rb"\r\nlocation[ \t]*:[ \t]*([^\r\n]*)", re.IGNORECASE)
_PORTS = {"http": 80, "https": 443}


def moved(request: bytes, answer: bytes, authority: str, *, tls: bool) -> bytes | None:
    """`request` with the target that the head of `answer` names; None when there is none on the same server.

    `authority` is the server's as in the Host header, `tls` whether it is spoken to in TLS: a redirect to another
    scheme, host or port is not followed, since the key would go there as well. A request to a proxy names its target
    in full, and so does the new one.
    """
    found = _LOCATION.search(answer)
    if found is None:
        return None
    method, _, rest = request.partition(b" ")
    target, _, rest = rest.partition(b" ")
    base = f"{'https' if tls else 'http'}://{authority}"
    old = target.decode("latin-1")
    proxied = not old.startswith("/")
    try:
        new = urlsplit(urljoin(old if proxied else base + old, found[1].strip().decode("latin-1")))
        same = (new.scheme, new.hostname, _port(new.scheme, new.port)) == _place(base)
    except ValueError:
        return None
    path = (new.path or "/") + (f"?{new.query}" if new.query else "")
    if not same or new.username is not None or not is_path(path):
        return None
    return b"%b %b %b" % (method, f"{base if proxied else ''}{path}".encode("ascii"), rest)


def _place(base: str) -> tuple[str, str | None, int | None]:
    parts = urlsplit(base)
    return parts.scheme, parts.hostname, _port(parts.scheme, parts.port)


def _port(scheme: str, port: int | None) -> int | None:
    return port or _PORTS.get(scheme)
