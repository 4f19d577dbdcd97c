"""What a decoder shows on the board: counts and two histograms, for the screen only."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from loadstone.board import BUCKETS, FIELDS, Field, Histogram, bucket
from loadstone.read.outcome import FAILURES, SUCCESSES


def bump(block: memoryview, row: Mapping[str, Any]) -> None:
    """Counts one decoded request; `row` is in the columns of `read.schema.REQUESTS`."""
    tokens = row.get("output_tokens") or 0
    block[Field.DECODED] += 1
    block[Field.TOKENS] += tokens
    if row["outcome"] not in SUCCESSES:
        block[Field.FAILED] += row["outcome"] in FAILURES
        return
    block[Field.OK] += 1
    first, last = row["first_ns"], row["last_ns"]
    _add(block, Histogram.LATENCY, (last or row["done_ns"]) - (row["sent_ns"] or row["due_ns"]))
    if last is not None and tokens > 1 and not row["coalesced"]:
        _add(block, Histogram.ITL, (last - first) // (tokens - 1))


def _add(block: memoryview, histogram: Histogram, value_ns: int) -> None:
    block[FIELDS + histogram * BUCKETS + bucket(value_ns // 1000)] += 1
