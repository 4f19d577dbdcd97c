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
REPLACEABLE = frozenset({"user-agent", "accept", "accept-encoding", "content-type", "authorization"})
"""Headers of ours that a user may replace, but that say nothing of a conversation."""
SESSION_HEADERS = (
    "X-Session-ID",
    "X-Session-Affinity",
    "X-Correlation-ID",
    "X-SMG-Routing-Key",
    "X-Dynamo-Session-ID",
)
"""Headers by which routers in front of inference servers tell conversations apart, to send all turns of one to the
same server. None is sent unless it is asked for."""

_NAME = re.compile(r"[!#$%&'*+.^_`|~\w-]+", re.ASCII)
_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
_NOT_LATIN = re.compile(r"[^\x00-\xff]")


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


def parse_header(header: str, key: str = "endpoint.headers") -> tuple[str, str]:
    """Name and value of a `NAME:VALUE`. Raises `UsageError`, without showing the value (it may be a key)."""
    name, colon, value = header.partition(":")
    if not colon:
        raise UsageError(f"{key}: a header without a colon; write NAME:VALUE.")
    name, value = _name(name, key, "what stands before the colon", "write NAME:VALUE"), value.strip()
    if _CONTROL.search(value):
        raise UsageError(f"{key}: {name!r} holds a control character.")
    if _NOT_LATIN.search(value):
        raise UsageError(f"{key}: {name!r} holds a character that HTTP does not allow.")
    return name, value


def header_name(name: str, key: str = "endpoint.session_headers") -> str:
    """A bare name for a header of a conversation. Raises `UsageError`, without showing what is no name."""
    name = _name(name, key, "what is given", f"write a name such as {SESSION_HEADERS[0]}")
    if name.lower() in REPLACEABLE:
        raise UsageError(f"{key}: {name} has another meaning; choose one such as {SESSION_HEADERS[0]}.")
    return name


def _name(name: str, key: str, what: str, advice: str) -> str:
    """A header's name that is not one of ours. Raises `UsageError`."""
    name = name.strip()
    if not _NAME.fullmatch(name):
        raise UsageError(f"{key}: {what} is no header's name; {advice}.")
    if name.lower() in OWN:
        raise UsageError(f"{key}: {name} is set by loadstone itself.")
    if name.lower() in PROXY:
        raise UsageError(f"{key}: {name} is for a proxy; give it as --proxy http://USER:PASSWORD@HOST:PORT.")
    return name


def session_lines(names: Sequence[str], value: str, end_header: str | None) -> bytes:
    """The header lines of one request that tell its conversation.

    `value` is the conversation's id, given under each of `names`; `end_header`, a whole NAME:VALUE, comes with the
    last turn (None: this is not the last, or nobody asked for it). Raises `UsageError` for a malformed header.
    """
    headers = [parse_header(f"{name}:{value}", "endpoint.session_headers") for name in names]
    if end_header is not None:
        headers.append(parse_header(end_header, "endpoint.session_end_header"))
    return "".join(f"{name}: {text}\r\n" for name, text in headers).encode("latin-1")


def tail(request_id: str, body: bytes, session: bytes = b"") -> bytes:
    """What follows the head: the id, the lines of the session (`session_lines`), the length and the body."""
    return b"%s\r\n%sContent-Length: %d\r\n\r\n%s" % (request_id.encode("ascii"), session, len(body), body)
