"""A connection to the server: its socket, the framing of what it answers, and the flight it carries.

The framer (`httptools`) calls back on the connection itself. `Streaming` also looks at body bytes, through the
endpoint's two predicates; `Connection` only counts what is no body. Neither knows the recording or the clock.
"""

from __future__ import annotations

import re
import socket
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import httptools

from loadstone.load.flight import Flight
from loadstone.load.tls import Tls

READING, CONNECTING, TUNNEL, HANDSHAKE, SENDING = range(5)
"""READING is 0: the loop asks for the truth of a state, and goes straight on to read."""

TOKEN_READ_BYTES = 512 - sys.getsizeof(b"")
"""What a read asks for in mid-stream: a token or two. Python sets aside as much for every read, and up to 512 bytes in
all come from its own pools, which is a good part of a microsecond cheaper than the system's allocator."""
SMALL_READ_BYTES = 4096
"""Room for the head of an answer."""
LARGE_READ_BYTES = 65536
"""For answers whose pieces have proved to be larger."""

Receive = Callable[[int, int], tuple[bytes, list[tuple[int, int, bytes]], int, Any]]
"""`socket.recvmsg`: bytes, ancillary messages, flags, address."""

MOST_HEAD_BYTES = 256 << 10
"""A head may be so long, interim ones before it included; no server needs as much."""
_CARRY_BYTES = 4096
"""Of an unfinished line before the first output, which the endpoint is asked about again with every read."""
_MARK_BYTES = 64
_BLANK = b"\r\n\r\n"
_PEEK = int(socket.MSG_PEEK | socket.MSG_DONTWAIT)
"""A plain number: putting two flags together takes three calls of Python."""
_LEAST_STATUS = 100
_LEAST_REFUSAL = 300
"""The body of such a status brings no output, whatever its words look like."""
EVENT_AND_CHUNK_END = (b"}\n\n\r\n", b"}\r\n\r\n\r\n")
"""How a read ends that ends with a whole event in a whole chunk. A chunked message never ends so."""
_CHUNKED = re.compile(rb"\r\ntransfer-encoding[ \t]*:[^\r]*chunked", re.IGNORECASE)
_CODED = re.compile(rb"\r\ncontent-encoding[ \t]*:[ \t]*(?!identity[ \t]*\r)[^ \t\r]", re.IGNORECASE)
_LENGTH_TOLD = re.compile(rb"\r\n(?:content-length|transfer-encoding)[ \t]*:", re.IGNORECASE)


class Connection:
    """A connection and the state of the message that is being received on it."""

    __slots__ = (
        "between",
        "complete",
        "fd",
        "feed",
        "flight",
        "got",
        "keeps_alive",
        "on_body",
        "opening",
        "outgoing",
        "parser",
        "pieces",
        "read_ns",
        "recvmsg",
        "reused",
        "sock",
        "state",
        "strays",
        "target",
        "tls",
        "under_way",
        "want",
    )  # fmt: skip

    def __init__(self, sock: socket.socket, flight: Flight, tls: Tls | None) -> None:
        self.sock = sock
        self.fd = sock.fileno()
        self.target = flight.target
        """The server at the other end, of all flights that it will carry."""
        self.recvmsg: Receive = sock.recvmsg if tls is None else self._receive_decrypted
        self.tls = tls
        self.state = CONNECTING
        self.flight: Flight | None = flight
        self.pieces: list[bytes] = []
        """Of the body, as the last feed brought them."""
        self.on_body = self.pieces.append
        self.between = 0
        """Bytes that were no body since the last that were: head, chunk sizes, trailer."""
        self.parser: Any = httptools.HttpResponseParser(self)
        self.feed: Callable[[bytes], None] = self._feed
        self.outgoing: bytes | memoryview = b""
        self.want = SMALL_READ_BYTES
        self.reused = False
        self.complete = False
        self.keeps_alive = False
        self.strays = False
        """Bytes came after a complete answer."""
        self.opening = b""
        self.got = 0
        """Bytes of the answer."""
        self.read_ns = 0
        """The last of them."""
        self.under_way = False

    def renew(self, flight: Flight) -> None:
        """Takes a new flight on a kept-alive connection."""
        self.flight = flight
        self.reused = True
        self.complete = False
        self.opening = b""
        self.got = self.between = 0
        self.want = SMALL_READ_BYTES

    def _feed(self, data: bytes) -> None:
        """Gives the framer what was read. Raises `HttpParserError` for what is not HTTP, or not in bounds."""
        self.parser.feed_data(data)
        self.between = 0 if self.pieces else self.between + len(data)
        if self.between > MOST_HEAD_BYTES:
            raise _endless()
        self.pieces.clear()

    def is_quiet(self) -> bool:
        """Whether nothing waits to be read: a server that has closed, or has more to say, cannot take a request."""
        try:
            waiting = self.sock.recv(1, _PEEK)
        except BlockingIOError:
            return True
        except OSError:
            return False
        return self.tls is not None and bool(waiting)  # session tickets come at any time

    def widen(self) -> None:
        """A read was full: the next ones ask for more."""
        self.want = SMALL_READ_BYTES if self.want < SMALL_READ_BYTES else LARGE_READ_BYTES

    def _receive_decrypted(
        self, size: int, ancillary_bytes: int
    ) -> tuple[bytes, list[tuple[int, int, bytes]], int, Any]:
        """A read through TLS: its plaintext with its stamp. Raises `BlockingIOError` when there is none yet."""
        assert self.tls is not None
        data, ancillary, flags, address = self.sock.recvmsg(LARGE_READ_BYTES, ancillary_bytes)
        if not data:
            return data, ancillary, flags, address
        plain = self.tls.decrypt(data)
        if reply := self.tls.pending():
            if self.outgoing:  # a record is half sent: nothing may come between its halves
                self.outgoing = b"".join((self.outgoing, reply))
            else:
                self._reply(reply)
        if self.tls.ended:
            with suppress(OSError):
                self.sock.shutdown(socket.SHUT_RD)  # what is read next is the end, as it is without TLS
        if not plain:
            raise BlockingIOError
        return plain, ancillary, flags, address

    def _reply(self, data: bytes) -> None:
        """Sends what TLS itself has to say. Raises `ConnectionError` when a server that asked for it does not read."""
        try:
            sent = self.sock.send(data)
        except BlockingIOError:
            sent = 0
        if sent < len(data):
            raise ConnectionError("the server does not read what it asked TLS for")

    def release(self) -> None:
        """Breaks the cycle of framer and connection, since nobody collects cycles in a worker."""
        self.flight = None
        self.parser = None
        del self.feed, self.recvmsg, self.on_body

    def on_message_begin(self) -> None:
        """Something follows a complete answer that nobody asked for: the connection is of no further use."""
        self.strays = self.complete

    def on_headers_complete(self) -> None:
        """Notes the status (of the last head: a 1xx is followed by another). Raises `ValueError` for no status."""
        status = self.parser.get_status_code()
        if status < _LEAST_STATUS:
            raise ValueError(f"a status of {status}")
        if self.flight is not None and not self.complete:
            self.flight.status = status

    def on_message_complete(self) -> None:
        """The message ended as its framing said; a 1xx is not the answer.

        Only at this moment the framer knows whether the connection may be used again.
        """
        if self.complete:
            return
        self.complete = self.flight is not None and self.flight.status >= 200
        self.keeps_alive = self.parser.should_keep_alive()

    def ends_with_close(self) -> bool:
        """Whether the close of the connection is what ends the message: a head that tells no length."""
        head = self.head()
        return bool(head) and _LENGTH_TOLD.search(head) is None

    def head(self) -> bytes:
        """The head of the answer, interim ones before it left out; empty while it is not whole."""
        opening = self.opening
        while opening.startswith(b"HTTP/1.1 1"):
            opening = opening.partition(_BLANK)[2]
        head, blank, _ = opening.partition(_BLANK)
        return head + blank if blank else b""


class Streaming(Connection):
    """A connection that watches for the first output and for the end mark of a stream.

    The framer appends pieces of the body to a list, which costs no Python call, and the endpoint is asked about all of
    them after each feed. When the output of a chunked stream has begun and the framer stands between two chunks, the
    connection is `under_way`: a read that ends with a whole event in a whole chunk then brings nothing but whole
    chunks and cannot be the last one. It need not be fed: the framer stands between two chunks afterwards as well.
    (Decoders frame everything; should such chunks be malformed, they tell.)
    """

    __slots__ = ("begun", "carry", "chunked", "coded", "ended")

    def __init__(
        self,
        sock: socket.socket,
        flight: Flight,
        tls: Tls | None,
        begun: Callable[[bytes], bool],
        ended: Callable[[bytes], bool],
    ) -> None:
        super().__init__(sock, flight, tls)
        self.begun = begun
        self.ended = ended
        self.carry = b""
        self.chunked: bool | None = None
        """Whether chunks tell where the message ends; None until the output has begun."""
        self.coded: bool | None = None
        """Whether the body is compressed, so that no look at it tells anything; None before its first byte."""

    def renew(self, flight: Flight) -> None:
        """Takes a new flight on a kept-alive connection."""
        super().renew(flight)
        self.carry = b""
        self.chunked = self.coded = None
        self.under_way = False

    def _feed(self, data: bytes) -> None:
        """Gives the framer what was read, looks at the body that this brought, and at where it leaves the stream."""
        try:
            self.parser.feed_data(data)
        finally:
            if self.pieces and self.flight is not None and self.flight.status < _LEAST_REFUSAL:
                self._look(b"".join(self.pieces), self.flight)
        self.between = 0 if self.pieces else self.between + len(data)
        if self.between > MOST_HEAD_BYTES:
            raise _endless()
        self.pieces.clear()
        if self.chunked is None and self.flight is not None and self.flight.begun_ns:
            self.chunked = _CHUNKED.search(self.opening) is not None
            if self.chunked and self.want == SMALL_READ_BYTES:
                self.want = TOKEN_READ_BYTES  # once an answer: reads that have proved too small stay wide
        self.under_way = bool(self.chunked) and data.endswith(EVENT_AND_CHUNK_END)

    def _look(self, body: bytes, flight: Flight) -> None:
        """Asks the endpoint about a piece of the body, together with the unfinished line before it."""
        if self.coded is None:
            self.coded = _CODED.search(self.opening) is not None
        if self.coded:
            flight.begun_ns = flight.begun_ns or self.read_ns
            return
        if self.carry:
            body = self.carry + body
        if not flight.begun_ns and self.begun(body):
            flight.begun_ns = self.read_ns
        if self.ended(body):
            flight.ended_mark = True
        if body.endswith(b"\n"):
            self.carry = b""
        else:
            self.carry = (
                body[-_MARK_BYTES:] if flight.begun_ns else body[body.rfind(b"\n") + 1 :][-_CARRY_BYTES:]
            )


def _endless() -> httptools.HttpParserError:
    """The framer copies an unfinished field of a head or trailer again for every read, so there has to be an end."""
    return httptools.HttpParserError(f"more than {MOST_HEAD_BYTES >> 10} kB between pieces of the body")
