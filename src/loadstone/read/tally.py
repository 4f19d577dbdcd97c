"""What a decoder shows on the board: counts and two histograms, for the screen only."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from loadstone.board import BUCKETS, FIELDS, Field, Histogram, bucket
from loadstone.read.outcome import CENSORED, CLIENT_FAULT, NOT_SENT, SUCCESSES

NO_FAILURES = CENSORED | {CLIENT_FAULT, NOT_SENT}
"""Neither successes nor failures: they say nothing of the server."""


def bump(block: memoryview, row: Mapping[str, Any]) -> None:
    """Counts one decoded request; `row` is in the columns of `read.schema.REQUESTS`."""
    tokens = row.get("output_tokens") or 0
    block[Field.DECODED] += 1
    block[Field.TOKENS] += tokens
    if row["outcome"] not in SUCCESSES:
        block[Field.FAILED] += row["outcome"] not in NO_FAILURES
        return
    block[Field.OK] += 1
    first, last = row["first_ns"], row["last_ns"]
    _add(block, Histogram.LATENCY, (last or row["done_ns"]) - (row["sent_ns"] or row["due_ns"]))
    if last is not None and tokens > 1 and not row["coalesced"]:
        _add(block, Histogram.ITL, (last - first) // (tokens - 1))


def _add(block: memoryview, histogram: Histogram, value_ns: int) -> None:
    block[FIELDS + histogram * BUCKETS + bucket(value_ns // 1000)] += 1
