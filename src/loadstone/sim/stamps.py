"""When a request arrived: the kernel's stamp of its last packet, where there is one, on the monotonic clock."""

from __future__ import annotations

import socket
import time
from typing import NamedTuple

from loadstone.clock import (
    ANCILLARY_BYTES,
    SECOND_NS,
    SO_TIMESTAMPNS,
    TIMESPEC,
    kernel_stamps_available,
    sample_offset,
)

_READ_BYTES = 1 << 16
_OFFSET_AGE_NS = 100_000_000


class Received(NamedTuple):
    """What one read brought; empty data: the peer closed."""

    data: bytes
    received_ns: int
    read_ns: int


GONE = Received(b"", 0, 0)
"""What is left of a connection that broke."""


class Stamps:
    """Reads sockets together with the kernel's stamps; samples the wall clock's offset when it has aged."""

    def __init__(self) -> None:
        self._on = kernel_stamps_available()
        self._offset = sample_offset()

    def ask(self, listener: socket.socket) -> None:
        """Has the kernel date what comes in on the connections that `listener` accepts from now on.

        When nobody on the machine had asked before, it begins a few ms later; until then it dates by the read.
        """
        if self._on:
            listener.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)

    def receive(self, connection: socket.socket) -> Received:
        """Reads once. Raises what `recv` raises."""
        if not self._on:
            return Received(connection.recv(_READ_BYTES), now := time.monotonic_ns(), now)
        data, ancillary, _, _ = connection.recvmsg(_READ_BYTES, ANCILLARY_BYTES)
        read_ns = time.monotonic_ns()
        for _, kind, stamp in ancillary:
            if kind == SO_TIMESTAMPNS and len(stamp) == TIMESPEC.size:
                return Received(data, self._monotonic(stamp, read_ns), read_ns)
        return Received(data, read_ns, read_ns)

    def _monotonic(self, stamp: bytes, read_ns: int) -> int:
        if read_ns - self._offset.mono_ns > _OFFSET_AGE_NS:
            self._offset = sample_offset()
        seconds, nanoseconds = TIMESPEC.unpack(stamp)
        stamp_ns = int(seconds * SECOND_NS + nanoseconds) - self._offset.offset_ns
        return min(stamp_ns, read_ns)  # the offset is known to within its sampling only
