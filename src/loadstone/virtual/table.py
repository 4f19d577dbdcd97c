"""What came of each request as rows of the table, gathered into parts in the columns of `read.schema.REQUESTS`.

One rule: an arrival is what the engine says of its own steps and the way from there, read at that same moment; what a process
of ours would have added stays null or 0. Knows no clock.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from loadstone.read import outcome
from loadstone.read.columns import write_part
from loadstone.read.schema import REQUESTS
from loadstone.recording import WireEnd
from loadstone.virtual.servers import Call

PART_TOKENS = 256 << 10
PART_REQUESTS = 20_000
"""A part is written when it has so much, so that memory holds no more than that."""
COLUMNS = (
    "request", "request_id", "worker", "target", "outcome", "fault", "http_status", "finish_reason", "streamed",
    "coalesced", "unfinished_event", "choices", "due_ns", "sent_ns", "written_ns", "answered_ns", "first_ns",
    "first_answer_ns", "last_ns", "done_ns", "first_read_ns", "kernel_stamps", "input_tokens",
    "input_tokens_source", "output_tokens", "output_tokens_source", "usage_prompt_tokens",
    "usage_completion_tokens", "usage_reasoning_tokens", "usage_cached_tokens", "retries", "redirects",
    "request_bytes",
)  # fmt: skip
"""What `row` gives, in this order."""
Times = Sequence[int]
_NO_TIMES: Times = array("q")
_ENDS = {
    WireEnd.TIMEOUT_FIRST_TOKEN: outcome.TIMEOUT_FIRST_TOKEN,
    WireEnd.TIMEOUT_IDLE: outcome.TIMEOUT_IDLE,
    WireEnd.TIMEOUT_TOTAL: outcome.TIMEOUT_TOTAL,
    WireEnd.CANCELLED: outcome.CANCELLED,
    WireEnd.CANCELLED_AS_PLANNED: outcome.CANCELLED_AS_PLANNED,
    WireEnd.CUT: outcome.CUT,
}

_OF_FINISH = {"length": outcome.OK_LENGTH, "tool_calls": outcome.OK_TOOL_CALLS}


class Ended:
    """One request that is over: its row, and the arrival of each of its output tokens."""

    __slots__ = ("choice", "outcome", "row", "times", "tokens_each")

    def __init__(self, name: str, row: tuple[Any, ...], times: Times = _NO_TIMES) -> None:
        self.outcome = name
        self.row = row
        self.times = times
        self.choice: NDArray[np.int16] | None = None
        """Which choice each token is of; None when there is one choice only."""
        self.tokens_each = False
        """Whether the server told the running count of tokens in every event."""


class Parts:
    """The rows of ended requests, written part by part."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._rows: list[Ended] = []
        self._tokens = self._written = 0

    def add(self, ended: Ended) -> None:
        """Keeps a row; writes a part when it is full."""
        self._rows.append(ended)
        self._tokens += len(ended.times)
        if self._tokens >= PART_TOKENS or len(self._rows) >= PART_REQUESTS:
            self.flush()

    def flush(self) -> None:
        """Writes what there is."""
        if self._rows:
            write_part(frame(self._rows), self._folder / f"d0-{self._written}.parquet")
            # No call in between: an interrupt would come there, and the same rows be written once more by another name.
            self._rows, self._tokens, self._written = [], 0, self._written + 1


def frame(rows: list[Ended]) -> pl.DataFrame:
    """The rows as a table, ordered by request."""
    rows = sorted(rows, key=lambda ended: ended.row[0])
    values = zip(*(ended.row for ended in rows), strict=True)
    columns = {
        name: pl.Series(name, column, REQUESTS[name]) for name, column in zip(COLUMNS, values, strict=True)
    }
    columns["arrival_ns"] = _lists("arrival_ns", [np.asarray(one.times, np.int64) for one in rows])
    columns["read_ns"] = columns["arrival_ns"].alias("read_ns")
    each = [np.ones(len(one.times), np.int32) if one.tokens_each else None for one in rows]
    columns["chunk_tokens"] = _lists("chunk_tokens", each)
    columns["chunk_choice"] = _lists("chunk_choice", [one.choice for one in rows])
    whole = pl.DataFrame(list(columns.values()))
    missing = [pl.lit(None, dtype).alias(name) for name, dtype in REQUESTS.items() if name not in columns]
    return whole.with_columns(missing).select(list(REQUESTS))


def _lists(name: str, arrays: Sequence[NDArray[Any] | None]) -> pl.Series:
    return pl.Series(name, arrays).cast(REQUESTS[name])  # of equal lengths they become an Array at first


def ended(call: Call, end: WireEnd, at_ns: int, request_id: str, counted: bool, later_ns: int = 0) -> Ended:
    """What came of a request that the engine took, and that ended now.

    `counted`: there is a tokenizer, so that the tokens of an answer without a usage are known all the same. `later_ns`: a
    token comes so much later than its step ends by the engine's clock.
    """
    asked = call.asked
    assert asked is not None, "the engine took it"
    complete = end == WireEnd.COMPLETE
    found = asked.choices
    reasoning, spoken = found[0].reasoning_tokens, 1
    each = [_come(sequence.times(), later_ns, at_ns) for sequence in call.sequences]
    times = each[0]
    answered_ns = times[reasoning] if len(times) > reasoning else None
    choice: NDArray[np.int16] | None = None
    if len(found) > 1:
        times, choice = _merged(each)
        answered_ns = _first_answer(call, each)
        reasoning = sum(one.reasoning_tokens for one in found)
        spoken = sum(len(one) > 0 for one in each)
    tokens = len(times) if asked.stream or complete else 0
    finish = found[0].finish
    name = _OF_FINISH.get(finish, outcome.OK) if complete else _ENDS[end]
    brought = tokens > 0
    streamed = brought and asked.stream
    told = brought and ((complete and (asked.usage_at_end or not asked.stream)) or asked.usage_in_chunks)
    source = "usage" if told else "tokenizer" if brought and counted else None
    first, last = (times[0], times[-1]) if streamed else (None, None)
    came_ns = first if asked.stream else at_ns if complete else None  # the head comes with the first token
    row = call.row
    result = Ended(
        name,
        (
            row.request, request_id, 0, call.target, name, None if complete else outcome.OUTCOMES[name],
            200 if brought else None, finish if complete else None, asked.stream if brought else None,
            (tokens > 1 and first == last) if streamed else None, False if brought else None,
            spoken if brought else None,
            call.due_ns, call.sent_ns, call.sent_ns, came_ns, first, answered_ns if streamed else None,
            last, at_ns, first, False, asked.prompt_tokens if told else None, "usage" if told else None,
            tokens if source else None, source, asked.prompt_tokens if told else None, tokens if told else None,
            min(tokens, reasoning) if told and reasoning else None,
            call.sequences[0].cached_tokens if told else None, 0, 0, row.body_bytes,
        ),
        times if streamed else _NO_TIMES,
    )  # fmt: skip
    if streamed:
        result.choice = choice
        result.tokens_each = asked.usage_in_chunks
    return result


def _come(times: array[int], later_ns: int, by_ns: int) -> Times:
    """When the tokens of these steps come, of those that have come by then."""
    if not later_ns or not times:
        return times
    found = array("q")
    found.frombytes((np.frombuffer(times, np.int64) + later_ns).tobytes())
    return found if found[-1] <= by_ns else found[: bisect_right(found, by_ns)]


def _merged(each: Sequence[Times]) -> tuple[list[int], NDArray[np.int16]]:
    """The tokens of several choices as they come: by their times, and which choice each of them is of."""
    at_ns = np.concatenate([np.asarray(times, np.int64) for times in each])
    choice = np.repeat(np.arange(len(each), dtype=np.int16), [len(times) for times in each])
    order = np.argsort(at_ns, kind="stable")
    return at_ns[order].tolist(), choice[order]


def _first_answer(call: Call, each: Sequence[Times]) -> int | None:
    """When the first token came that is not reasoning; None: none has."""
    assert call.asked is not None, "the engine took it"
    firsts = [
        times[one.reasoning_tokens]
        for one, times in zip(call.asked.choices, each, strict=True)
        if len(times) > one.reasoning_tokens
    ]
    return min(firsts, default=None)


def refused(
    call: Call, name: str, fault: str | None, status: int | None, at_ns: int, request_id: str
) -> Ended:
    """What came of a request that the server refused, or of which nothing had come yet when it was given up."""
    row = call.row
    known = {
        "request": row.request, "request_id": request_id, "worker": 0, "target": call.target, "outcome": name,
        "fault": fault, "http_status": status, "due_ns": call.due_ns, "sent_ns": call.sent_ns,
        "written_ns": call.sent_ns, "answered_ns": None if status is None else at_ns, "done_ns": at_ns,
        "kernel_stamps": False, "retries": 0, "redirects": 0, "request_bytes": row.body_bytes,
    }  # fmt: skip
    return Ended(name, tuple(known.get(column) for column in COLUMNS))
