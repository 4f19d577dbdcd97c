"""What a decoder shows on the board: counts, sums and two histograms, for the screen and for when to stop."""

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
    sent, first, last = row["sent_ns"] or row["due_ns"], row["first_ns"], row["last_ns"]
    latency_ns = (last or row["done_ns"]) - sent
    block[Field.LATENCY_US] += latency_ns // 1000
    _add(block, Histogram.LATENCY, latency_ns)
    if last is None or row["coalesced"]:
        return
    block[Field.TTFT_US] += (first - sent) // 1000
    block[Field.TTFTS] += 1
    if tokens > 1:
        gap_ns = (last - first) // (tokens - 1)
        block[Field.GAPS_US] += (last - first) // 1000
        block[Field.GAPS] += tokens - 1
        block[Field.TPOT_US] += gap_ns // 1000
        block[Field.TPOTS] += 1
        _add(block, Histogram.ITL, gap_ns)


def _add(block: memoryview, histogram: Histogram, value_ns: int) -> None:
    block[FIELDS + histogram * BUCKETS + bucket(value_ns // 1000)] += 1
