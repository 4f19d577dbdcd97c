"""Counts the requests that are beyond an objective, for the board: for whoever may end the load before its time.

One rule: what is counted is certainly beyond. A request whose value the metric would have read otherwise, or left out, is not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from loadstone.board import Field
from loadstone.read.outcome import FAILURES, SUCCESSES
from loadstone.slo import Watched

Row = Mapping[str, Any]
"""A request in the columns of `read.schema.REQUESTS`."""


def count(block: memoryview, row: Row, watched: Sequence[Watched]) -> None:
    """Adds a measured request to the objectives that it is beyond."""
    for at, one in enumerate(watched):
        block[Field.BEYOND + at] += _is_beyond(row, one)


def _is_beyond(row: Row, one: Watched) -> bool:
    if row["outcome"] not in SUCCESSES:
        return one.failures and row["outcome"] in FAILURES
    values = ((VALUES[metric](row), limit_ms) for metric, limit_ms in one.limits.items())
    return any(value_ns is not None and value_ns / 1e6 > limit_ms for value_ns, limit_ms in values)


def _latency(since: str) -> Callable[[Row], float | None]:
    """Of an answer in tokens until its last one; of any other until its end."""

    def value(row: Row) -> float | None:
        end = row["last_ns"] if row["streamed"] else row["done_ns"]
        return None if end is None or row[since] is None else end - row[since]

    return value


def _first_token(since: str) -> Callable[[Row], float | None]:
    def value(row: Row) -> float | None:
        known = row["streamed"] and not row["coalesced"] and row["first_ns"] is not None
        return row["first_ns"] - row[since] if known and row[since] is not None else None

    return value


def _token_time(row: Row) -> float | None:
    tokens = row["output_tokens"] or 0
    known = row["streamed"] and not row["coalesced"] and row["choices"] == 1 and row["last_ns"] is not None
    return (row["last_ns"] - row["first_ns"]) / (tokens - 1) if known and tokens > 1 else None


VALUES: Mapping[str, Callable[[Row], float | None]] = {
    "request_latency": _latency("sent_ns"),
    "request_latency_from_due": _latency("due_ns"),
    "time_to_first_token": _first_token("sent_ns"),
    "time_to_first_token_from_due": _first_token("due_ns"),
    "time_per_output_token": _token_time,
}
"""The metrics that a decoder knows of a request by itself, in nanoseconds; None where it has none."""
