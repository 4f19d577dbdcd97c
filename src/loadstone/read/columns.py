"""The columns of decoded requests while they gather, and the Parquet part they become.

One rule: a part is on the disk, whole and synced, before anything it was made from may go. What only the
plan knows (phase, conversation, model, lengths asked for) stays null here; `read.tables` fills it in.
"""

from __future__ import annotations

import os
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from loadstone.endpoints import Reply, Usage
from loadstone.read import outcome
from loadstone.read.answer import Answer
from loadstone.read.flights import UNKNOWN_TARGET, Flight
from loadstone.read.schema import REQUESTS
from loadstone.read.stamps import Times
from loadstone.recording import WireEnd

SCALARS = [name for name, dtype in REQUESTS.items() if not isinstance(dtype, pl.List)]
PACKED_BYTES = 4096
"""Of a text, packed; a model that has begun to repeat itself does not stop."""
PACKED_LEAST_BYTES = 400
"""A shorter one holds too little for a loop to show."""
_NONE: Times = np.empty(0, np.int64)
_NO_USAGE = Usage()
Reads = NDArray[np.intp]
_NO_READS: Reads = np.empty(0, np.intp)


class Decoded:
    """One request as a row: `scalars` by column name, and the times of its output events.

    `uncounted` is the text whose tokens the server did not count; None when it did, or when there was none.
    `unchecked` is the text that our tokenizer is to count beside the server; None outside the sample.
    """

    __slots__ = ("arrival_ns", "choice", "chunk_tokens", "read_ns", "scalars", "unchecked", "uncounted")

    def __init__(
        self, scalars: dict[str, Any], reply: Reply | None, arrival_ns: Times, read_ns: Times, check: bool
    ) -> None:
        self.scalars = scalars
        self.arrival_ns = arrival_ns
        self.read_ns = read_ns
        self.chunk_tokens = self.choice = None
        if reply is not None and len(arrival_ns):
            self.chunk_tokens = _chunk_tokens(reply)
            self.choice = _chunk_choice(reply)
        self.uncounted: str | None = None
        self.unchecked: str | None = None
        if reply is not None and reply.brought:
            if scalars["output_tokens_source"] is None and reply.spoke:
                self.uncounted = _text(reply)
            if check and scalars["outcome"] in outcome.SUCCESSES and reply.choices <= 1:
                self.unchecked = _text(reply)

    def estimate(self, tokens: int | None) -> None:
        """Takes the tokenizer's count where the server gave none (None: there is no tokenizer either)."""
        self.uncounted = None
        if tokens is not None:
            self.scalars["output_tokens"] = tokens
            self.scalars["output_tokens_source"] = "tokenizer"
        if self.unchecked is not None:
            self.check(tokens)

    def check(self, tokens: int | None) -> None:
        """Takes the tokenizer's count beside the server's, and looks how often the text repeats itself."""
        self.scalars["text_zlib_ratio"] = zlib_ratio(self.unchecked or "")
        self.unchecked = None
        self.scalars["checked_output_tokens"] = tokens

    def spoil(self, defect: str) -> None:
        """Keeps what the worker saw and nothing of what the answer meant, which was no table row."""
        known = {name: self.scalars.get(name) for name in SEEN}
        self.scalars = known | {"outcome": outcome.CLIENT_FAULT, "fault": defect}
        self.arrival_ns = self.read_ns = _NONE
        self.chunk_tokens = self.choice = self.uncounted = self.unchecked = None


def decoded(flight: Flight, answer: Answer, arrived: list[int], check: bool = False) -> Decoded:
    """The row of one flight. `arrived` counts the bytes of the body after each read.

    `check`: a whole answer of one choice is to be counted by the tokenizer as well.
    """
    facts, reply = flight.facts, answer.reply
    name, fault = outcome.decide(WireEnd(facts.end), flight.words, answer)
    by = _completed(answer, arrived)
    output = _NO_READS if reply is None or not len(by) else by[reply.output]
    arrival_ns, read_ns = flight.arrival_ns[output], flight.read_ns[output]
    there = len(output) > 0
    first_answer = reply.first_answer if there and reply is not None else None
    scalars = {
        **_seen(flight),
        "outcome": name,
        "fault": fault,
        "http_status": answer.status or facts.status or None,
        "retry_after_s": answer.retry_after_s,
        "streamed": None if reply is None else answer.streamed,
        "coalesced": _coalesced(output) if reply is not None and answer.streamed else None,
        "compressed": answer.compressed,
        "unfinished_event": None if reply is None else answer.unfinished_event,
        "first_ns": int(arrival_ns[0]) if there else None,
        "first_answer_ns": None if first_answer is None else int(flight.arrival_ns[by[first_answer]]),
        "last_ns": int(arrival_ns[-1]) if there else None,
        "first_read_ns": int(read_ns[0]) if there else None,
        **_content(reply),
    }
    return Decoded(scalars, reply, arrival_ns, read_ns, check)


def undecodable(flight: Flight, defect: str) -> Decoded:
    """The row of a flight whose answer we could not decode, for no fault of the server."""
    scalars = {
        **_seen(flight),
        "http_status": flight.facts.status or None,
        "outcome": outcome.CLIENT_FAULT,
        "fault": outcome.sentence(defect),
    }
    return Decoded(scalars, None, _NONE, _NONE, check=False)


def _seen(flight: Flight) -> dict[str, Any]:
    """What the worker saw of a flight: the part of a row for which its answer need not be understood."""
    facts = flight.facts
    return {
        "request": facts.request,
        "target": None if facts.target == UNKNOWN_TARGET else facts.target,
        "retries": facts.retries,
        "redirects": facts.redirects,
        "due_ns": facts.due_ns,
        "connect_ns": facts.connect_ns or None,
        "tcp_ns": facts.tcp_ns or None,
        "connected_ns": facts.connected_ns or None,
        "sent_ns": facts.sent_ns or None,
        "written_ns": facts.written_ns or None,
        "answered_ns": int(flight.arrival_ns[0]) if len(flight.arrival_ns) else None,
        "done_ns": _done_ns(flight),
        "kernel_stamps": flight.kernel_stamps,
        "request_bytes": facts.body_bytes,
        "response_bytes": sum(map(len, flight.reads)),
    }


SEEN = (
    "request", "request_id", "worker", "target", "retries", "redirects", "due_ns", "connect_ns", "tcp_ns",
    "connected_ns", "sent_ns", "written_ns", "answered_ns", "done_ns", "kernel_stamps", "request_bytes",
    "response_bytes",
)  # fmt: skip
"""Columns that hold what the worker saw."""


def _completed(answer: Answer, arrived: list[int]) -> Reads:
    """For every event of a stream the read that completed it; none when none of them brought output."""
    if answer.reply is None or not answer.reply.output or not answer.streamed:
        return _NO_READS
    return np.searchsorted(arrived, np.array(answer.ends, np.int64))


def _coalesced(output: Reads) -> bool:
    """Whether the output is several events that one and the same read completed.

    What follows them, such as a usage chunk or the end mark, changes nothing: the output was held back as a whole.
    """
    return len(output) > 1 and int(output[0]) == int(output[-1])


def _chunk_tokens(reply: Reply) -> NDArray[np.int32] | None:
    if reply.tokens_after is None:
        return None
    return np.asarray(np.diff(np.array(reply.tokens_after, np.int32), prepend=np.int32(0)), np.int32)


def _chunk_choice(reply: Reply) -> NDArray[np.int16] | None:
    if reply.choice is None or reply.choices <= 1:
        return None
    return np.array(reply.choice, np.int16)


def _text(reply: Reply) -> str:
    return "".join((*reply.reasoning, *reply.text, *reply.tool_calls))


def zlib_ratio(text: str) -> float | None:
    """The last `PACKED_BYTES` of a text by their size when packed: about 2 for prose, 10 and more for a loop.

    None for a text too short to tell.
    """
    end = text[-PACKED_BYTES:].encode(errors="replace")[-PACKED_BYTES:]
    return len(end) / len(zlib.compress(end)) if len(end) >= PACKED_LEAST_BYTES else None


def _done_ns(flight: Flight) -> int:
    """The arrival of the last byte of a response that was whole; else the moment when the flight ended."""
    whole = flight.facts.end == WireEnd.COMPLETE and len(flight.reads) > 0
    return int(flight.arrival_ns[-1]) if whole else flight.end_ns


def _content(reply: Reply | None) -> dict[str, Any]:
    """What the answer itself tells. A count of 0 beside some output is kept, but is no count."""
    if reply is None:
        return {"input_tokens_source": None, "output_tokens_source": None}
    usage = reply.usage or _NO_USAGE
    counted = usage.completion_tokens is not None and (usage.completion_tokens > 0 or not reply.spoke)
    return {
        "finish_reason": outcome.sentence(reply.finish_reason) if reply.finish_reason else None,
        "choices": reply.choices or None,
        "input_tokens": usage.prompt_tokens,
        "input_tokens_source": None if usage.prompt_tokens is None else "usage",
        "output_tokens": usage.completion_tokens if counted else None,
        "output_tokens_source": "usage" if counted else None,
        "usage_prompt_tokens": usage.prompt_tokens,
        "usage_completion_tokens": usage.completion_tokens,
        "usage_reasoning_tokens": usage.reasoning_tokens,
        "usage_cached_tokens": usage.cached_tokens,
        "usage_accepted_prediction_tokens": usage.accepted_prediction_tokens,
        "usage_rejected_prediction_tokens": usage.rejected_prediction_tokens,
        "draft_steps": usage.draft_steps,
        "draft_tokens": usage.draft_tokens,
        "draft_accepted_tokens": usage.draft_accepted_tokens,
        "items": reply.items,
        "audio_s": usage.audio_s,
        "text_chars": sum(map(len, reply.text)),
        "reasoning_chars": sum(map(len, reply.reasoning)),
    }


def frame(rows: list[Decoded]) -> pl.DataFrame:
    """The rows as a table in the columns of `read.schema.REQUESTS`, ordered by request."""
    rows = sorted(rows, key=lambda row: row.scalars["request"])
    columns: dict[str, pl.Series] = {
        name: pl.Series(name, [row.scalars.get(name) for row in rows], REQUESTS[name]) for name in SCALARS
    }
    columns["arrival_ns"] = _lists("arrival_ns", [row.arrival_ns for row in rows])
    columns["read_ns"] = _lists("read_ns", [row.read_ns for row in rows])
    columns["chunk_tokens"] = _lists("chunk_tokens", [row.chunk_tokens for row in rows])
    columns["chunk_choice"] = _lists("chunk_choice", [row.choice for row in rows])
    return pl.DataFrame([columns[name] for name in REQUESTS])


def _lists(name: str, arrays: list[Any]) -> pl.Series:
    """A list column, one entry an array; built from one flat column, as arrays one by one cost far more."""
    dtype = REQUESTS[name]
    there = [position for position, items in enumerate(arrays) if items is not None and len(items)]
    if not there:
        return pl.Series(name, [None if items is None else [] for items in arrays], dtype)
    full = [arrays[position] for position in there]
    owner: NDArray[np.int64] = np.repeat(np.arange(len(full)), [len(items) for items in full])
    flat = pl.DataFrame({"owner": owner, name: np.concatenate(full)})
    grouped = flat.group_by("owner", maintain_order=True).agg(name)[name].cast(dtype)
    if len(there) == len(arrays):
        return grouped
    others = pl.Series(name, [None if arrays[p] is None else [] for p in _rest(there, len(arrays))], dtype)
    order = np.argsort(np.array([*there, *_rest(there, len(arrays))]))
    return pl.concat([grouped, others]).gather(order)


def _rest(there: list[int], count: int) -> list[int]:
    known = set(there)
    return [position for position in range(count) if position not in known]


def write_part(table: pl.DataFrame, path: Path) -> None:
    """Writes one part: whole and synced under its name, or not at all."""
    draft = path.with_suffix(".new")
    try:
        table.write_parquet(draft, compression="zstd", compression_level=1, statistics=False)
        sync(draft)
    except BaseException:
        draft.unlink(missing_ok=True)  # on a full disk its space is needed
        raise
    draft.replace(path)
    sync(path.parent)


def sync(path: Path) -> None:
    """Waits until a file or a folder is on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
