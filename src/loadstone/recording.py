"""The recording: what a worker writes while the clock runs, and nothing but that.

A worker writes numbered segments, each a pair of files that only grow:
`w<worker>-<segment>.dat`, the bytes as they were received (after TLS, if any), and
`w<worker>-<segment>.idx`, rows of 32 bytes. Data is written before the rows that point to it,
so after a crash the last whole row is good and what follows it is cut.

Every row is `serial u32 | code u32 | at_ns i64 | 16 bytes`. `serial` numbers the flights of one
worker from 1 (0: not about a flight). Times are CLOCK_MONOTONIC ns unless said otherwise.

| code        | at_ns             | the 16 bytes                                                  |
|-------------|-------------------|---------------------------------------------------------------|
| n < 2**31   | moment of reading | the kernel's stamp as a timespec (sec i64, nsec i64, wall clock; zeros: none); n bytes follow in .dat |
| CLOCK       | moment of sample  | offset_ns i64 (wall = mono + offset), 0                        |
| START       | sent_ns           | request i64, due_ns i64                                       |
| RESENT      | sent_ns           | 0, 0: first try died unanswered on a reused connection; its reads do not count |
| REDIRECTED  | sent_ns           | 0, 0: the answer was a redirect and the request goes to where it pointed; the reads before do not count |
| END         | moment of the end | dat_bytes u64, 0: an `END_FACTS` struct and a UTF-8 message follow in .dat, dat_bytes in all |

This module has no I/O and no clock; `read` and `load` both import it, and meet nowhere else.
"""

from __future__ import annotations

from enum import IntEnum
from struct import Struct
from typing import NamedTuple

ROW = Struct("<IIq16s")
PAIR = Struct("<qq")

CLOCK = 0xFFFF_FFFF
START = 0xFFFF_FFFE
RESENT = 0xFFFF_FFFD
END = 0xFFFF_FFFC
REDIRECTED = 0xFFFF_FFFB
FIRST_CODE = 0x8000_0000
"""Codes from here on are events; below, a number of bytes read."""

SEGMENT_BYTES = 16 << 20

END_FACTS = Struct("<qqqqqqqqHHHHHHI")
"""`Facts` as bytes."""


class Facts(NamedTuple):
    """What a worker noted of a flight by its end."""

    request: int
    """Row of the plan."""
    due_ns: int
    sent_ns: int
    """The first send; after a transparent retry the second, since the first never reached the server."""
    written_ns: int
    """The last byte of the request was given to the kernel, of a redirected one the first time; 0: never."""
    connect_ns: int
    """Connecting began, for the first send; 0: a kept-alive connection."""
    tcp_ns: int
    """TCP stood, through a proxy its tunnel too, and TLS began; 0: likewise, or never."""
    connected_ns: int
    """TLS stood; without TLS the same moment as `tcp_ns`; 0: likewise, or never."""
    begun_ns: int
    """The first output, as the endpoint's `begun` saw it; 0: never."""
    end: int
    """A `WireEnd`."""
    status: int
    """The HTTP status; 0: none."""
    retries: int
    redirects: int
    phase: int
    target: int
    """Which server it was for."""
    body_bytes: int
    """Of the request."""


class WireEnd(IntEnum):
    """How a flight ended on the wire, as far as a worker that parses nothing can tell."""

    COMPLETE = 0
    """The HTTP message ended as its framing said, or the endpoint's end mark was seen."""
    CLOSED = 1
    """The server closed the connection cleanly before the message was complete."""
    RESET = 2
    """The connection was reset before the message was complete."""
    PROTOCOL = 3
    """What arrived is not HTTP/1.1."""
    CONNECT = 4
    """No connection, for a reason that has no name of its own here: unreachable, refused by a proxy."""
    TIMEOUT_FIRST_TOKEN = 5
    TIMEOUT_TOTAL = 6
    CUT = 7
    """Still under way when the run's grace period ended; cancelled by us."""
    CLIENT = 8
    """The client's own fault: no descriptors, no ports, a defect."""
    REFUSED = 9
    """Nobody listens at the address."""
    TLS = 10
    """The TLS handshake failed."""
    TIMEOUT_CONNECT = 11
    TIMEOUT_IDLE = 12
    """Nothing came for too long after the answer had begun."""
    CANCELLED = 13
    """Cancelled by us before its time: the user interrupted, or the run was given up."""
    TOO_LARGE = 14
    """More bytes than an answer may have; we closed the connection."""
    NOT_SENT = 15
    """Taken from the plan, but the load was stopped before there was a connection to send it on."""
    CANCELLED_AS_PLANNED = 16
    """Cancelled by us because the plan said so."""


def segment_name(worker: int, segment: int) -> str:
    """The common stem of a segment's two files."""
    return f"w{worker:02d}-{segment:05d}"


def segment_of(stem: str) -> tuple[int, int]:
    """Worker and segment that a stem names: the inverse of `segment_name`."""
    worker, _, segment = stem.partition("-")
    return int(worker.removeprefix("w")), int(segment)
