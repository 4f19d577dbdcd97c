"""The ground truth: what the server received and sent, and when. JSON lines, one an answer, when it ends.

Times are CLOCK_MONOTONIC ns, the clock of every process of the machine; null where it never came to that.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import msgspec


class TruthRow(msgspec.Struct, kw_only=True):
    """One answer as it was. A request that the client sent again, for a redirect or on a new connection, has two."""

    request_id: str
    """The client's X-Request-ID; the server's own answer id when it sent none."""
    received_ns: int
    """The kernel's stamp of the packet that completed the request; the time of reading where there is none."""
    read_ns: int
    """When the server read it."""
    first_sent_ns: int | None = None
    """Just before the first output token was given to the kernel."""
    last_sent_ns: int | None = None
    sent_ns: list[int] | None = None
    """Just before each output token was given to the kernel, one entry a token; null where the answer was not streamed
    or did not come from the engine."""
    scheduled_ns: int | None = None
    """The beginning, on the engine's time line, of the first step with a part of its prompt."""
    prompt_tokens: int
    cached_tokens: int | None = None
    """Tokens of the prompt that were found in the prefix cache when it was first scheduled."""
    tokens: int = 0
    """Output tokens sent."""
    preemptions: int | None = None
    """How often it lost its place in the batch."""
    engine: int | None = None
    """The number of the engine that answered the first choice, from 0 on; of a request whose client has left, of the one that
    had it last or was about to get it."""
    bytes_sent: int = 0
    """Bytes of the response, head and framing included, that the kernel took."""
    end: Literal["stop", "length", "played", "closed", "done"] = "closed"
    """How the answer ended; played: its fault was played to the end; closed: the client left before; done: nothing was
    to be generated."""
    fault: str | None = None
    """The fault it was answered with."""
    hook: str | None = None
    """The path, where no answer was asked for but something was to be done: a cache emptied, a profiler started."""


class TruthFile:
    """The file; written behind a buffer, so that a request costs a copy and no system call."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("wb", buffering=1 << 20)

    def add(self, row: TruthRow) -> None:
        """Adds the row of a request that has ended."""
        self._file.write(msgspec.json.encode(row) + b"\n")

    def flush(self) -> None:
        """Makes what was added visible to readers."""
        self._file.flush()

    def close(self) -> None:
        """Writes what is left."""
        self._file.close()


def read_truth(path: Path) -> list[TruthRow]:
    """The rows of a truth file; a torn last line is left out."""
    lines = path.read_bytes().splitlines(keepends=True)
    return [msgspec.json.decode(line, type=TruthRow) for line in lines if line.endswith(b"\n")]
