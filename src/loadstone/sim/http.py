"""HTTP/1.1 for a server: bytes in, whole requests out; a response as bytes. No sockets, no JSON.

Framing is httptools'. A request larger than `MAX_REQUEST_BYTES` is refused.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import NamedTuple

import httptools

from loadstone import __version__

MAX_REQUEST_BYTES = 64 << 20
SERVER = f"loadstone-sim/{__version__}".encode()

STREAM_HEAD = (
    b"HTTP/1.1 200 OK\r\nServer: %b\r\nContent-Type: text/event-stream; charset=utf-8\r\n"
    b"Cache-Control: no-cache\r\nTransfer-Encoding: chunked\r\n\r\n" % SERVER
)
LAST_CHUNK = b"0\r\n\r\n"
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"


class Request(NamedTuple):
    """One whole request. Header names are lower case; `path` is without its query, which is `query`."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    keep_alive: bool
    query: str = ""


class Refused(Exception):
    """What arrived is not a request this server takes; answer with `status` and close."""

    def __init__(self, status: HTTPStatus, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message


class RequestReader:
    """Turns the bytes of one connection into requests. The `on_` methods are called by httptools."""

    def __init__(self) -> None:
        self._parser = httptools.HttpRequestParser(self)
        self._done: list[Request] = []
        self._expects = False
        self.on_message_begin()

    def feed(self, data: bytes) -> list[Request]:
        """The requests that `data` completed. Raises `Refused`; the connection is of no use then."""
        self._bytes += len(data)
        self._check()
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            raise Refused(HTTPStatus.BAD_REQUEST, "this server does not change protocols") from None
        except httptools.HttpParserError as error:
            raise Refused(HTTPStatus.BAD_REQUEST, f"not HTTP/1.1: {error}") from None
        self._check()
        done, self._done = self._done, []
        return done

    def expects(self) -> bool:
        """Whether the client waits for `CONTINUE` before it sends the body of a request; true once."""
        expects, self._expects = self._expects, False
        return expects

    def _check(self) -> None:
        if max(self._bytes, self._announced) > MAX_REQUEST_BYTES:
            raise Refused(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"request over {MAX_REQUEST_BYTES} bytes")

    def on_message_begin(self) -> None:
        """A new request starts."""
        self._url = b""
        self._headers: dict[str, str] = {}
        self._body: list[bytes] = []
        self._bytes = 0
        self._announced = 0
        """What the head says of the length of the body."""
        self._expects = False

    def on_url(self, url: bytes) -> None:
        """A piece of the request target."""
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        """One header."""
        self._headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        """The head is whole."""
        length = self._headers.get("content-length", "")
        self._announced = int(length) if length.isdecimal() else 0
        expected = self._headers.get("expect", "").lower() == "100-continue"
        self._expects = expected and self._parser.get_http_version() == "1.1"

    def on_body(self, body: bytes) -> None:
        """A piece of the body."""
        self._expects = False
        self._body.append(body)

    def on_message_complete(self) -> None:
        """The request is whole."""
        path, _, query = self._url.decode("latin-1").partition("?")
        method = self._parser.get_method().decode("ascii")
        keep_alive = self._parser.should_keep_alive()
        self._done.append(Request(method, path, self._headers, b"".join(self._body), keep_alive, query))
        self._announced = 0
        self._expects = False


JSON = b"application/json"


def response(
    status: int,
    body: bytes,
    *,
    keep_alive: bool = True,
    content_type: bytes = JSON,
    bodiless: bool = False,
) -> bytes:
    """A whole response. `bodiless`: its head alone, as HEAD asks for."""
    phrase = HTTPStatus(status).phrase.encode()
    connection = b"" if keep_alive else b"Connection: close\r\n"
    return b"HTTP/1.1 %d %b\r\nServer: %b\r\nContent-Type: %b\r\nContent-Length: %d\r\n%b\r\n%b" % (
        status,
        phrase,
        SERVER,
        content_type,
        len(body),
        connection,
        b"" if bodiless else body,
    )


def labelled(answer: bytes, request_id: str | None) -> bytes:
    """The beginning of a response, with the id of the request in its head; None: as it is."""
    if request_id is None:
        return answer
    status, _, rest = answer.partition(b"\r\n")
    return b"%b\r\nX-Request-Id: %b\r\n%b" % (status, request_id.encode("latin-1"), rest)


def chunk(data: bytes) -> bytes:
    """One chunk of a streamed response."""
    return b"%x\r\n%b\r\n" % (len(data), data)
