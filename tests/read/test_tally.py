from __future__ import annotations

import pytest

from loadstone.board import BUCKETS, FIELDS, WORDS, Field, Histogram
from loadstone.read.outcome import OUTCOMES, SUCCESSES
from loadstone.read.tally import bump

ROW = {
    "outcome": "ok", "due_ns": 1_000, "sent_ns": 2_000, "first_ns": 10_000, "last_ns": 90_000, "done_ns": 95_000,
    "output_tokens": 5, "coalesced": False,
}  # fmt: skip


def counts(**changes):
    """The fields that moved, and the entries of the two histograms."""
    block = memoryview(bytearray(WORDS * 8)).cast("q")
    bump(block, ROW | changes)
    moved = {field.name: block[field] for field in Field if block[field]}
    sums = [
        sum(block[FIELDS + h * BUCKETS : FIELDS + (h + 1) * BUCKETS])
        for h in (Histogram.LATENCY, Histogram.ITL)
    ]
    return moved, sums


def test_a_success():
    counted = {"DECODED": 1, "OK": 1, "TOKENS": 5}
    sums = {"LATENCY_US": 88, "TTFT_US": 8, "TTFTS": 1, "GAPS_US": 80, "GAPS": 4, "TPOT_US": 20, "TPOTS": 1}
    assert counts() == (counted | sums, [1, 1])


def test_an_answer_that_came_in_one_read_has_no_gaps():
    assert counts(coalesced=True)[1] == [1, 0]


def test_an_answer_without_moments_of_its_tokens():
    assert counts(first_ns=None, last_ns=None, sent_ns=None)[1] == [1, 0]


@pytest.mark.parametrize("outcome", sorted(OUTCOMES.keys() - SUCCESSES))
def test_only_the_servers_failures_count_as_failed(outcome):
    ours = outcome in {"cut", "cancelled", "cancelled-as-planned", "client-fault", "not-sent"}
    moved, sums = counts(outcome=outcome, output_tokens=None)
    assert moved == ({"DECODED": 1} if ours else {"DECODED": 1, "FAILED": 1})
    assert sums == [0, 0]
