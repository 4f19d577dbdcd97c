"""Clocks: everything is CLOCK_MONOTONIC nanoseconds; kernel stamps are mapped onto it.

The kernel dates received bytes by the wall clock (CLOCK_REALTIME). The wall clock may be slewed
or stepped, so its offset to the monotonic clock is sampled again and again while a run lasts.
This module does not know who asks.
"""

from __future__ import annotations

import socket
import sys
import time
from struct import Struct
from typing import NamedTuple

SECOND_NS = 1_000_000_000

STEP_NS = 1_000_000
"""An offset that moves by more than this between two samples was stepped, not slewed.

The kernel slews by at most 500 ppm: 0.1 ms in the 0.2 s between a worker's samples."""

SO_TIMESTAMPNS = 35
"""The socket option that asks for a stamp with every read, and the type of the ancillary message that brings it.
Linux on 64 bits; the socket module does not have it."""
TIMESPEC = Struct("<qq")
"""A stamp: seconds, nanoseconds of the wall clock."""
ANCILLARY_BYTES = socket.CMSG_SPACE(TIMESPEC.size)
"""Room for a stamp in `recvmsg`."""


def kernel_stamps_available() -> bool:
    """Whether the kernel can date received bytes in that way."""
    return sys.platform == "linux" and sys.maxsize > 2**32


class Offset(NamedTuple):
    """`wall_ns = mono_ns + offset_ns`, as it was at `mono_ns`."""

    mono_ns: int
    offset_ns: int


def sample_offset(tries: int = 5) -> Offset:
    """The present offset of the wall clock to the monotonic clock.

    Reads monotonic, wall, monotonic and keeps the try whose two monotonic readings lie closest
    together: the error is at most half their distance, well below a microsecond when undisturbed.
    """
    best_ns = 1 << 62
    best = Offset(0, 0)
    for _ in range(tries):
        before = time.monotonic_ns()
        wall = time.time_ns()
        after = time.monotonic_ns()
        if after - before < best_ns:
            best_ns = after - before
            middle = (before + after) // 2
            best = Offset(middle, wall - middle)
    return best
