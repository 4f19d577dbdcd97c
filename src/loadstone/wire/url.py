"""Addresses as people write them, and what they mean. Pure text; resolves and connects nothing."""

from __future__ import annotations

import re
from typing import NamedTuple
from urllib.parse import urlsplit

from loadstone.errors import UsageError

USERINFO = re.compile(r"^(\s*(?:[A-Za-z][\w+.-]*://)?)(.*)@", re.DOTALL)
"""User and password, as group 2, whatever is not escaped in them; what stands before them is group 1."""
_ADVICE = "give HOST, HOST:PORT or http(s)://HOST:PORT/PREFIX."


class Target(NamedTuple):
    """Where requests go. `host` is ASCII; `prefix` is the path before the API's own, without a trailing slash or `/v1`."""

    tls: bool
    host: str
    port: int
    prefix: str
    query: str = ""

    @property
    def authority(self) -> str:
        """Host and port as the Host header has them; the scheme's default port is left out."""
        host = bracketed(self.host)
        return host if self.port == (443 if self.tls else 80) else f"{host}:{self.port}"

    @property
    def origin(self) -> str:
        """Scheme and authority."""
        return f"{'https' if self.tls else 'http'}://{self.authority}"

    @property
    def url(self) -> str:
        """The base address in full."""
        return self.origin + self.prefix

    def path(self, endpoint_path: str) -> str:
        """The path of a request to `endpoint_path`, such as `/v1/chat/completions`."""
        path = f"{self.prefix}/{endpoint_path.lstrip('/')}" if endpoint_path else self.prefix or "/"
        return f"{path}{'&' if '?' in path else '?'}{self.query}" if self.query else path


def parse(url: str) -> Target:
    """The target an address means: scheme, `/v1` and trailing slash may be there or not.

    A full endpoint address (`.../v1/chat/completions`) is cut back to its base. Raises `UsageError`, which shows
    neither a user nor a query.
    """
    text = url.strip()
    if "@" in text:
        raise UsageError(
            "endpoint.url: leave user and password out; give a key with --api-key or --header. "
            "An @ of the path or the query is written %40."
        )
    if "#" in text:
        raise UsageError("endpoint.url: holds a #, which no server is sent; leave out what follows it.")
    where = f"endpoint.url = {shown(text)!r}"
    try:
        parts = urlsplit(text if "://" in text else f"http://{text}")
        hostname = parts.hostname or ""
    except ValueError:
        raise UsageError(f"{where}: is not an address; {_ADVICE}") from None
    if parts.scheme not in ("http", "https"):
        raise UsageError(f"{where}: scheme {parts.scheme!r} is not http or https.")
    if not hostname:
        raise UsageError(f"{where}: {_ADVICE}")
    try:
        port = parts.port
    except ValueError:
        port = 0
    if port == 0 or any(char.isspace() or ord(char) < 32 for char in text):
        raise UsageError(f"{where}: the port must be a number from 1 to 65535.")
    if not is_path(parts.path + parts.query):
        raise UsageError(f"{where}: the path must be ASCII; percent-encode what is not.")
    try:
        host = ascii_host(hostname)
    except ValueError:
        raise UsageError(f"{where}: {hostname[:40]!r} is no name of a host.") from None
    tls = parts.scheme == "https"
    return Target(tls, host, port or (443 if tls else 80), _base(parts.path), parts.query)


def page_address(url: str, page: str = "/metrics") -> tuple[Target, str]:
    """The server of one page and the page's path and query, as given; `page` where the address names none.

    Raises `UsageError`, which shows neither a user nor a query.
    """
    try:
        target = parse(url)
    except UsageError as error:
        raise UsageError(str(error).replace("endpoint.url", "server.metrics_urls", 1)) from None
    text = url.strip()
    parts = urlsplit(text if "://" in text else f"http://{text}")
    path = parts.path if parts.path.strip("/") else page
    return target, f"{path}?{parts.query}" if parts.query else path


def shown(url: str) -> str:
    """An address as a message may show it: without user, query and fragment, which may hold a key."""
    bare = re.sub(r"[^/?#]*@", "***@", url)
    return re.sub(r"([?#]).*", r"\1***", bare, flags=re.DOTALL)[:200]


def is_path(text: str) -> bool:
    """Whether a request line can carry `text` as it is."""
    return text.isascii() and (not text or text.isprintable()) and " " not in text


def ascii_host(host: str) -> str:
    """A host as the resolver and HTTP take it: `xn--` for what is not ASCII, the zone of an IPv6 address after `%`.

    Raises `ValueError` when it can be none.
    """
    if ":" in host:
        return host.replace("%25", "%", 1)
    name = host.encode("idna").decode("ascii")
    if not re.fullmatch(r"[\w.-]*", name):
        raise ValueError("not a name")
    return name


def bracketed(host: str) -> str:
    """A host as it stands in an address, where an IPv6 one has brackets and its zone means nothing."""
    return f"[{host.partition('%')[0]}]" if ":" in host else host


def _base(path: str) -> str:
    base = path.rstrip("/")
    head, mark, _ = base.rpartition("/v1/")
    if mark:
        return head
    return base.removesuffix("/v1")
