"""The ground truth: what the server received and sent, and when. JSON lines, one a request, when it ends.

Times are CLOCK_MONOTONIC ns, the clock of every process of the machine; null where it never came to that.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import msgspec


class TruthRow(msgspec.Struct, kw_only=True):
    """One request as it was."""

    request_id: str
    """The client's X-Request-ID; the server's own answer id when it sent none."""
    received_ns: int
    """The kernel's stamp of the packet that completed the request; the time of reading where there is none."""
    read_ns: int
    """When the server read it."""
    first_sent_ns: int | None = None
    """Just before the first output token was given to the kernel."""
    last_sent_ns: int | None = None
    prompt_tokens: int
    tokens: int = 0
    """Output tokens sent."""
    end: Literal["stop", "length", "closed"] = "closed"
    """How the answer ended; closed: the client left before."""


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
