"""The board: live counters in shared memory, written by workers and decoders, summed by the screen.

A file of 64-bit integers mapped by every process of a run; each process writes only its own block, so
no one waits, and a reader may see a block a few counts apart but never torn numbers. A block is
`FIELDS` counters followed by `HISTOGRAMS` log-bucket histograms. No result comes
from here, but when a load may stop.
"""

from __future__ import annotations

import fcntl
import mmap
import sys
from contextlib import suppress
from enum import IntEnum
from pathlib import Path
from typing import NamedTuple


class Field(IntEnum):
    """Counters of one block. Workers bump the first group, decoders the second."""

    DRAWN = 0
    """Rows taken from the plan."""
    SENT = 1
    ENDED = 2
    """Flights that ended, in whatever way."""
    CONNECTS = 3
    BYTES = 4
    CPU_NS = 5
    QUEUED = 6
    """Rows that are due but wait for a slot."""
    BEAT_NS = 7
    """Monotonic time of the last sign of life."""
    DECODED = 8
    OK = 9
    FAILED = 10
    """Failures of the server; neither what we cut off or cancelled ourselves nor our own faults."""
    TOKENS = 11
    """Output tokens of decoded answers."""
    WANTED = 12
    """Row of the plan that a worker wants next; the greatest of all says how far the plan has to be."""
    LATENCY_US = 13
    """Of all answers that were decoded and good, together; written by decoders, as what follows."""
    TTFT_US = 14
    TTFTS = 15
    """How many answers had a time to first token."""
    GAPS_US = 16
    """From the first token to the last, of all answers together."""
    GAPS = 17
    """The tokens after the first ones."""
    TPOT_US = 18
    """The mean gaps of all answers, added up."""
    TPOTS = 19
    """How many answers had one."""
    BEYOND = 24
    """Measured requests beyond the first objective that is watched; the others have the fields behind it."""


class Histogram(IntEnum):
    """Histograms of one block; values are microseconds."""

    TTFT = 0
    """Live, by the endpoint's `begun`; written by workers."""
    SEND_LAG = 1
    LATENCY = 2
    """Written by decoders."""
    ITL = 3
    """Mean gap of one answer; written by decoders."""


FIELDS = 32
BUCKETS = 320
"""Eight buckets to the octave, up to 2**39 us."""
WORDS = FIELDS + len(Histogram) * BUCKETS


def bucket(value_us: int) -> int:
    """The bucket of a value: eight to the octave, so within 1/8 of it; 0 and below fall into the first.

    `bits = value.bit_length()`; the three bits after the leading one choose within the octave.
    """
    if value_us < 8:
        return max(value_us, 0)
    bits = value_us.bit_length()
    return min((bits - 3) * 8 + ((value_us >> (bits - 4)) & 7), BUCKETS - 1)


def bucket_middle_us(index: int) -> float:
    """The middle of a bucket, in microseconds; the inverse of `bucket` to within 1/16."""
    if index < 8:
        return float(index)
    octave, step = divmod(index, 8)
    width = 1 << (octave - 1)
    return (8 + step) * width + width / 2


class Live(NamedTuple):
    """All blocks added up. Histograms are lists of `BUCKETS` counts."""

    fields: list[int]
    histograms: list[list[int]]

    def quantile_us(self, which: Histogram, share: float) -> float | None:
        """A quantile of one live histogram, in microseconds, within an eighth; None without samples."""
        counts = self.histograms[which]
        rank = share * sum(counts)
        seen = 0
        for index, count in enumerate(counts):
            seen += count
            if count and seen >= rank:
                return bucket_middle_us(index)
        return None


class Board:
    """A mapped board file. `blocks` processes may write, each through its own `block(i)`."""

    def __init__(self, path: Path, blocks: int, create: bool = False) -> None:
        size = blocks * WORDS * 8
        if create:
            path.write_bytes(bytes(size))
        with path.open("r+b") as file:
            with suppress(OSError):  # some network file systems have no locks
                fcntl.flock(file, fcntl.LOCK_SH)  # the map's own descriptor keeps it: see `folder.goes_on`
            self._map = mmap.mmap(file.fileno(), size)
        self._words = memoryview(self._map).cast("q")
        self.blocks = blocks

    def block(self, index: int) -> memoryview:
        """One process's words: `block[Field.SENT] += 1`; histogram h starts at `FIELDS + h * BUCKETS`."""
        return self._words[index * WORDS : (index + 1) * WORDS]

    def live(self) -> Live:
        """The sum over all blocks.

        Counts stay far below 2**63, so no lane of one long number ever carries into the next: adding the blocks as
        long numbers adds all lanes at once, fifty times faster than one by one.
        """
        size = WORDS * 8
        blocks = (self._map[at : at + size] for at in range(0, self.blocks * size, size))
        added = sum(int.from_bytes(block, sys.byteorder) for block in blocks)
        words = memoryview(added.to_bytes(size, sys.byteorder)).cast("q").tolist()
        histograms = [words[FIELDS + h * BUCKETS : FIELDS + (h + 1) * BUCKETS] for h in Histogram]
        return Live(words[:FIELDS], histograms)

    def close(self) -> None:
        """Unmaps the file. Blocks handed out must not be used afterwards.

        Where one is still held, as by the frames of an error on its way, the map goes with the last of them.
        """
        with suppress(BufferError):
            self._words.release()
            self._map.close()
