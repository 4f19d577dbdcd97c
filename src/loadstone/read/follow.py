"""The decoder's process: a `Job` comes in by the first line, `Finish` or the end of input stops it.

Runs at nice 19 (measured: harmless to the load, which SCHED_IDLE is not) and on one thread. Everything heavy is
imported after that is set.
"""

from __future__ import annotations

import gc
import os
import select
import signal
from contextlib import suppress

import msgspec

from loadstone.read.job import Done, Job

POLL_S = 0.3
"""With the 0.2 s between a worker's writes, live values are at most 0.5 s late; polling costs more than it looks."""
NICE = 19


def decode_all(job: Job) -> Done:
    """Decodes a recording to which nothing is added any more, such as a crash leaves behind."""
    from loadstone.read.decoder import Decoder

    return Decoder(job).finish()


def follow(job: Job, orders: int) -> Done:
    """Decodes while workers record, until the descriptor `orders` can be read."""
    from loadstone.read.decoder import Decoder

    decoder = Decoder(job)
    wait_s = 0.0
    while not select.select([orders], [], [], wait_s)[0]:
        wait_s = 0.0 if decoder.step() else POLL_S
    return decoder.finish()


def main() -> None:
    """Job in, parts on disk, one line out; nothing at all when main is gone before it has said anything."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the terminal's Ctrl-C is main's to hear
    os.nice(NICE - os.nice(0))
    os.environ.update(OPENBLAS_NUM_THREADS="1", POLARS_MAX_THREADS="1")
    with open(
        0, "rb", buffering=0, closefd=False
    ) as orders:  # unbuffered: a second line must stay to be seen
        line = orders.readline()
        if not line.endswith(b"\n"):
            return
        gc.freeze()
        done = follow(msgspec.json.decode(line, type=Job), orders.fileno())
    with suppress(BrokenPipeError):  # main is gone; what was decoded is on the disk
        os.write(1, msgspec.json.encode(done) + b"\n")


if __name__ == "__main__":
    main()
