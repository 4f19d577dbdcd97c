"""The plan on disk: `rows.bin`, one fixed-size row a request, and `bodies.bin`, the request bodies.

Rows are in the order in which they are to be sent. Both files only grow, and a row is written
after its body, so whoever can read a row can read its body. Closed-loop workers share one open
file description of `rows.bin`: a `read` of one row is then an atomic fetch-and-advance of the
common position, which is all the co-ordination they need. Knows nothing of HTTP.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from struct import Struct
from typing import NamedTuple

ROW = Struct("<qqQIiiIHHH18x")
"""request, due_ns, body_at, body_bytes, isl_tokens, osl_tokens, conversation, turn, phase, final, padding.

64 bytes divide every page, and a file grows by pages: a reader never sees half a row."""

ROWS = "rows.bin"
BODIES = "bodies.bin"
UNKNOWN = -1
WHEN_A_SLOT_FREES = -1


class Row(NamedTuple):
    """One planned request.

    `due_ns` counts from the start of its phase; `WHEN_A_SLOT_FREES` in a closed loop.
    `isl_tokens` and `osl_tokens` are the lengths asked for, `UNKNOWN` where nobody said.
    """

    request: int
    due_ns: int
    body_at: int
    body_bytes: int
    isl_tokens: int
    osl_tokens: int
    conversation: int
    turn: int
    phase: int
    final: int = 1
    """1: the last turn of its conversation."""


class Draft(NamedTuple):
    """A row whose body has not been stored yet."""

    due_ns: int
    body: bytes
    isl_tokens: int
    osl_tokens: int
    conversation: int
    turn: int
    phase: int
    final: int = 1


class Writer:
    """Appends drafts to a plan folder, after those that are there already."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._rows = (folder / ROWS).open("ab", buffering=0)
        self._bodies = (folder / BODIES).open("ab", buffering=0)
        self.requests = self._rows.tell() // ROW.size
        self.body_bytes = self._bodies.tell()

    def append(self, drafts: Iterable[Draft]) -> int:
        """Stores `drafts` in their order and returns how many there were."""
        rows, bodies = [], []
        for draft in drafts:
            rows.append(
                ROW.pack(
                    self.requests, draft.due_ns, self.body_bytes, len(draft.body), draft.isl_tokens,
                    draft.osl_tokens, draft.conversation, draft.turn, draft.phase, draft.final,
                )
            )  # fmt: skip
            bodies.append(draft.body)
            self.requests += 1
            self.body_bytes += len(draft.body)
        _write_all(self._bodies.fileno(), b"".join(bodies))
        _write_all(self._rows.fileno(), b"".join(rows))
        return len(rows)

    def close(self) -> None:
        """Closes both files."""
        self._rows.close()
        self._bodies.close()


def _write_all(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def read_rows(folder: Path, start: int = 0, stop: int | None = None) -> Iterator[Row]:
    """The rows `start` up to `stop` of a plan folder; a torn last row is left out."""
    with (folder / ROWS).open("rb") as file:
        file.seek(start * ROW.size)
        left = -1 if stop is None else stop - start
        while left and len(packed := file.read(ROW.size)) == ROW.size:
            yield Row._make(ROW.unpack(packed))
            left -= 1


def read_requests(folder: Path, start: int = 0, stop: int | None = None) -> Iterator[tuple[Row, bytes]]:
    """The same rows, each with its request body; one at a time."""
    with (folder / BODIES).open("rb") as bodies:
        for row in read_rows(folder, start, stop):
            bodies.seek(row.body_at)
            yield row, bodies.read(row.body_bytes)


class Survey(NamedTuple):
    """What a stretch of a plan holds. `digest` is the SHA-256 over its bodies, in order."""

    digest: str
    one_token_prompts: int


def survey(folder: Path, first_row: int, rows: int) -> Survey:
    """Reads through the bodies of `rows` rows from `first_row` on."""
    digest = hashlib.sha256()
    one_token = 0
    for row, body in read_requests(folder, first_row, first_row + rows):
        digest.update(body)
        one_token += row.isl_tokens == 1
    return Survey(digest.hexdigest(), one_token)
