"""When so much fails that going on tells nothing more: the error rate of the last outcomes of a phase.

Pure: it is told the board's counters now and then and never asks for anything.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

from loadstone.board import Field

WINDOW = 100
ARMED_FROM = 20
"""Outcomes that a phase needs at least, before its failures are held against it."""
MOST_LOOKS = 4096
"""Looks kept to date outcomes by, which decoders tell later: a quarter of an hour."""


class _Batch(NamedTuple):
    """Outcomes that came between two looks; `before` flights had been decoded when the first of them was."""

    before: int
    ok: int
    failed: int


class Failures:
    """The outcomes of one phase. `threshold` is the share of failures that may not be exceeded; 1: never told.

    `concurrency` arms it: with many requests in flight, the first to end are not like the others.
    """

    def __init__(self, threshold: float, concurrency: int | None, fields: Sequence[int]) -> None:
        self._threshold = threshold
        self._armed_from = max(concurrency or 1, ARMED_FROM)
        self._first = fields[Field.ENDED]
        """Flights before the phase; some may still be waiting for their decoder."""
        self._before = list(fields)
        self._seen = 0
        self._batches: deque[_Batch] = deque()
        self._looks: deque[tuple[float, int]] = deque(maxlen=MOST_LOOKS)

    def look(self, fields: Sequence[int], elapsed_s: float) -> str | None:
        """Why the run should be given up, if it should; `elapsed_s` counts from the start of the phase."""
        self._looks.append((elapsed_s, fields[Field.ENDED]))
        before, self._before = self._before, list(fields)
        ok, failed = (fields[field] - before[field] for field in (Field.OK, Field.FAILED))
        if ok + failed == 0 or before[Field.DECODED] < self._first:
            return None
        self._batches.append(_Batch(before[Field.DECODED], ok, failed))
        self._seen += ok + failed
        self._forget()
        return self._verdict() if self._seen >= self._armed_from else None

    def _forget(self) -> None:
        """Lets go of what no longer belongs to the window."""
        kept = sum(batch.ok + batch.failed for batch in self._batches)
        while kept - (oldest := self._batches[0].ok + self._batches[0].failed) >= WINDOW:
            kept -= oldest
            self._batches.popleft()
        while len(self._looks) > 1 and self._looks[0][1] <= self._batches[0].before:
            self._looks.popleft()

    def _verdict(self) -> str | None:
        wanted, failed = WINDOW, 0.0
        since = self._batches[-1]
        for batch in reversed(self._batches):
            taken = min(batch.ok + batch.failed, wanted)
            failed += batch.failed * taken / (batch.ok + batch.failed)
            wanted -= taken
            since = batch if batch.failed else since
        seen = WINDOW - wanted
        if self._threshold >= 1 or failed <= self._threshold * seen:
            return None
        return f"{math.ceil(failed)} of the last {seen} requests failed, since about {self._ended_s(since):.1f} s"

    def _ended_s(self, batch: _Batch) -> float:
        """When the first of these outcomes came about: workers count the ends of flights as they happen."""
        return next((at_s for at_s, ended in self._looks if ended > batch.before), self._looks[-1][0])
