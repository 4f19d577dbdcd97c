"""The plan on disk: one file of fixed-size rows a phase (`rows_file`), and `bodies.bin`, all request bodies.

Rows are in the order in which they are to be sent, and numbered through all phases; a phase whose length nobody knows
beforehand leaves numbers free behind it. The files only grow, and a row is written after its body, so whoever
can read a row can read its body. Closed-loop workers share one open file description of a phase's rows: a `read` of one
row is then an atomic fetch-and-advance of the common position, which is all the co-ordination they need. Knows nothing
of HTTP.
"""

from __future__ import annotations

import hashlib
import os
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from struct import Struct
from typing import NamedTuple

ROW = Struct("<qqQIiiIHHHHHHHH8x")
"""request, due_ns, body_at, body_bytes, isl_tokens, osl_tokens, conversation, turn, phase, final, target, model,
follows, cancelled, opens, padding.

64 bytes divide every page, and a file grows by pages: a reader never sees half a row."""

_ROWS = re.compile(r"rows-(\d{12,})\.bin")
BODIES = "bodies.bin"
UNKNOWN = -1
ANY_TARGET = 0xFFFF
"""A target of a row: whichever has the fewest requests in flight when the row is sent."""
WHEN_A_SLOT_FREES = -1
REST_NS = 100_000_000
"""How long a place rests after a request that got no answer at all, so that a closed loop on a server that is gone does not
burn its requests as fast as connections fail."""
HELD_BYTES = 16 << 20
"""Bodies that a writer holds before it writes them, give or take one."""


class Row(NamedTuple):
    """One planned request, or the mark that a phase has no more of them (`is_end`).

    `due_ns` counts from the start of its phase; `WHEN_A_SLOT_FREES` in a closed loop; where `follows` is 1, from the end
    of the turn before. A turn with a due time of its own is not sent before the turn before it has ended either.
    `isl_tokens` and `osl_tokens` are the lengths asked for, `UNKNOWN` where nobody said. The turns of a conversation
    are rows that follow each other.
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
    target: int = 0
    """Which of `endpoint.urls` it goes to, or `ANY_TARGET`."""
    model: int = 0
    """Which of `endpoint.models` it asks."""
    follows: int = 0
    """1: due so long after the end of the turn before (think time)."""
    cancelled: int = 0
    """1: we cancel it, the delay of its phase after it was sent."""
    opens: int = 1
    """1: the first row of its conversation in the plan, by which a worker takes the conversation; its turn may be a later
    one where a user was at it before the start."""

    @property
    def is_end(self) -> bool:
        """Whether this is no request, but says that its phase has no more of them."""
        return not self.body_bytes


class Draft(NamedTuple):
    """A row whose body has not been stored yet; an empty body is the mark of a phase's end."""

    due_ns: int
    body: bytes
    isl_tokens: int
    osl_tokens: int
    conversation: int
    turn: int
    phase: int
    final: int = 1
    target: int = 0
    model: int = 0
    follows: int = 0
    cancelled: int = 0
    opens: int = 1


def rows_file(first_row: int) -> str:
    """The name of the file with the rows of the phase whose first row has this number."""
    return f"rows-{first_row:012d}.bin"


class Writer:
    """Appends drafts to a plan folder, after those that are there already.

    `first_rows` has the number of every phase's first row, in the order of the phases.
    """

    def __init__(self, folder: Path, first_rows: Sequence[int] = (0,)) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._first = first_rows
        self._rows = [(folder / rows_file(first)).open("ab", buffering=0) for first in first_rows]
        self._bodies = (folder / BODIES).open("ab", buffering=0)
        self.rows = [file.tell() // ROW.size for file in self._rows]
        """Rows that every phase has, marks of its end included."""
        self.body_bytes = self._bodies.tell()

    def append(self, drafts: Iterable[Draft]) -> int:
        """Stores `drafts`, all of one phase, in their order; how many there were.

        Their rows can be read all at once, when all bodies can.
        """
        rows, bodies = [], []
        phase = held_bytes = 0
        for draft in drafts:
            phase = draft.phase
            rows.append(
                ROW.pack(
                    self._first[phase] + self.rows[phase], draft.due_ns, self.body_bytes, len(draft.body),
                    draft.isl_tokens, draft.osl_tokens, draft.conversation, draft.turn, phase, draft.final,
                    draft.target, draft.model, draft.follows, draft.cancelled, draft.opens,
                )
            )  # fmt: skip
            bodies.append(draft.body)
            self.rows[phase] += 1
            self.body_bytes += len(draft.body)
            held_bytes += len(draft.body)
            if held_bytes >= HELD_BYTES:
                _write_all(self._bodies.fileno(), b"".join(bodies))
                bodies.clear()
                held_bytes = 0
        _write_all(self._bodies.fileno(), b"".join(bodies))
        _write_all(self._rows[phase].fileno(), b"".join(rows))
        return len(rows)

    def close(self) -> None:
        """Closes all files."""
        for file in (*self._rows, self._bodies):
            file.close()


def _write_all(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def read_rows(folder: Path, start: int = 0, stop: int | None = None) -> Iterator[Row]:
    """The rows with numbers from `start` up to `stop` of a plan folder; a torn last row of a phase is left out."""
    files = _files(folder)
    for (first, path), (following, _) in pairwise([*files, (sys.maxsize, folder)]):
        low, high = max(start, first), min(sys.maxsize if stop is None else stop, following)
        if low < high:
            yield from _rows_of(path, low - first, high - first)


def _files(folder: Path) -> list[tuple[int, Path]]:
    """The first row of every phase, and the file that has its rows; in their order."""
    found = ((_ROWS.fullmatch(path.name), path) for path in folder.iterdir())
    return sorted((int(name[1]), path) for name, path in found if name)


def _rows_of(path: Path, start: int, stop: int) -> Iterator[Row]:
    """The rows of one file from position `start` up to `stop`, without the marks of its end."""
    with path.open("rb") as file:
        file.seek(start * ROW.size)
        left = stop - start
        while left and len(packed := file.read(ROW.size)) == ROW.size:
            row = Row._make(ROW.unpack(packed))
            if not row.is_end:
                yield row
            left -= 1


def read_requests(folder: Path, start: int = 0, stop: int | None = None) -> Iterator[tuple[Row, bytes]]:
    """The same rows, each with its request body; one at a time."""
    with (folder / BODIES).open("rb") as bodies:
        for row in read_rows(folder, start, stop):
            bodies.seek(row.body_at)
            yield row, bodies.read(row.body_bytes)


class Survey(NamedTuple):
    """What some stretches of a plan hold. `digest` is the SHA-256 over their bodies, in order."""

    digest: str
    one_token_prompts: int
    repeated: int
    """Rows of conversations that are not among the first ones, which are the only ones that differ."""


def survey(folder: Path, stretches: Iterable[tuple[int, int]], distinct: int | None = None) -> Survey:
    """Reads through the bodies of some stretches, each from its first row on so many rows.

    `distinct` conversations of a phase differ, and are repeated then; None: all do.
    """
    digest = hashlib.sha256()
    one_token = repeated = 0
    for first_row, rows in stretches:
        for row, body in read_requests(folder, first_row, first_row + rows):
            digest.update(body)
            one_token += row.isl_tokens == 1
            repeated += distinct is not None and row.conversation >= distinct
    return Survey(digest.hexdigest(), one_token, repeated)
