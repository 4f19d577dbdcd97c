"""Addresses as people write them, and what they mean. Pure text; resolves and connects nothing."""

from __future__ import annotations

from typing import NamedTuple
from urllib.parse import urlsplit

from loadstone.errors import UsageError


class Target(NamedTuple):
    """Where requests go. `prefix` is the path before the API's own, without a trailing slash or `/v1`."""

    tls: bool
    host: str
    port: int
    prefix: str
    query: str = ""

    @property
    def authority(self) -> str:
        """Host and port as the Host header has them; the scheme's default port is left out."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == (443 if self.tls else 80) else f"{host}:{self.port}"

    @property
    def url(self) -> str:
        """The base address in full."""
        return f"{'https' if self.tls else 'http'}://{self.authority}{self.prefix}"

    def path(self, endpoint_path: str) -> str:
        """The path of a request to `endpoint_path`, such as `/v1/chat/completions`."""
        path = f"{self.prefix}/{endpoint_path.lstrip('/')}" if endpoint_path else self.prefix or "/"
        return f"{path}?{self.query}" if self.query else path


def parse(url: str) -> Target:
    """The target an address means: scheme, `/v1` and trailing slash may be there or not.

    A full endpoint address (`.../v1/chat/completions`) is cut back to its base. Raises `UsageError`.
    """
    text = url.strip()
    try:
        parts = urlsplit(text if "://" in text else f"http://{text}")
    except ValueError as error:
        raise UsageError(
            f"endpoint.url: {error}; give HOST, HOST:PORT or http(s)://HOST:PORT/PREFIX."
        ) from None
    if parts.scheme not in ("http", "https"):
        raise UsageError(f"endpoint.url = {url!r}: scheme {parts.scheme!r} is not http or https.")
    if parts.username is not None:
        raise UsageError("endpoint.url: leave user and password out; give a key with --api-key or --header.")
    if not parts.hostname:
        raise UsageError(f"endpoint.url = {url!r}: give HOST, HOST:PORT or http(s)://HOST:PORT/PREFIX.")
    try:
        port = parts.port
    except ValueError:
        port = 0
    if port == 0 or any(char.isspace() or ord(char) < 32 for char in text):
        raise UsageError(f"endpoint.url = {url!r}: the port must be a number from 1 to 65535.")
    if not is_path(parts.path + parts.query):
        raise UsageError(f"endpoint.url = {url!r}: the path must be ASCII; percent-encode what is not.")
    if not _is_name(parts.hostname):
        raise UsageError(f"endpoint.url = {url!r}: {parts.hostname[:40]!r} is no name of a host.")
    tls = parts.scheme == "https"
    return Target(tls, parts.hostname, port or (443 if tls else 80), _base(parts.path), parts.query)


def is_path(text: str) -> bool:
    """Whether a request line can carry `text` as it is."""
    return text.isascii() and (not text or text.isprintable()) and " " not in text


def _is_name(host: str) -> bool:
    """Whether the resolver can be asked for it."""
    try:
        host.encode("idna")
    except UnicodeError:
        return False
    return True


def _base(path: str) -> str:
    base = path.rstrip("/")
    head, mark, _ = base.rpartition("/v1/")
    if mark:
        return head
    return base.removesuffix("/v1")
