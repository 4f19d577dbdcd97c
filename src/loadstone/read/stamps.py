"""From kernel stamps to arrival times on the monotonic clock.

The kernel dates by the wall clock; the worker sampled how far that is from the monotonic clock. Between two samples the
offset is taken to move evenly (slewing). Where it jumped, nobody knows when: reads near a jump keep the
moment at which they were read. The samples of one worker are ordered in time.
"""

from __future__ import annotations

from array import array

import numpy as np
from numpy.typing import NDArray

from loadstone.clock import STEP_NS

Times = NDArray[np.int64]
NEAR_NS = 1_000_000_000
"""A read within this time after a jump may hold bytes stamped before it."""


class Offsets:
    """The offsets that one worker sampled: `wall = mono + offset`."""

    def __init__(self) -> None:
        self._mono = array("q")
        self._offset = array("q")

    def add(self, mono_ns: Times, offset_ns: Times) -> None:
        """Takes further samples, in their order."""
        self._mono.frombytes(mono_ns.astype(np.int64).tobytes())
        self._offset.frombytes(offset_ns.astype(np.int64).tobytes())

    @property
    def last_ns(self) -> int:
        """The moment of the last sample; 0 before the first."""
        return self._mono[-1] if self._mono else 0

    @property
    def steps(self) -> int:
        """How often the wall clock jumped between two samples."""
        return int(np.count_nonzero(np.abs(np.diff(np.array(self._offset, np.int64))) > STEP_NS))

    def arrivals(self, read_ns: Times, stamp_ns: Times) -> tuple[Times, NDArray[np.bool_]]:
        """When the bytes of each read arrived, and whether that is the kernel's word (else the moment of reading).

        `stamp_ns` is wall time, 0 for a read without a stamp. An arrival is never later than its read.
        """
        if not self._mono:
            return read_ns, np.zeros(len(read_ns), np.bool_)
        mono, offset = np.array(self._mono, np.int64), np.array(self._offset, np.int64)
        base = offset[0]
        moved = np.interp(read_ns, mono, (offset - base).astype(np.float64))
        arrival = np.minimum(stamp_ns - base - np.rint(moved).astype(np.int64), read_ns)
        known = (stamp_ns != 0) & ~_near_jump(read_ns, mono, offset)
        return np.where(known, arrival, read_ns), known


def _near_jump(read_ns: Times, mono: Times, offset: Times) -> NDArray[np.bool_]:
    """Whether a read lies between two samples with a jump between them, or shortly after."""
    jumps = np.flatnonzero(np.abs(np.diff(offset)) > STEP_NS)
    if not len(jumps):
        return np.zeros(len(read_ns), np.bool_)
    starts, ends = mono[jumps], mono[jumps + 1]
    latest = np.searchsorted(starts, read_ns, side="right") - 1
    near: NDArray[np.bool_] = (latest >= 0) & (read_ns <= ends[latest] + NEAR_NS)
    return near
