"""Rows of ended requests as a part: columns, types, order."""

from __future__ import annotations

from array import array

import polars as pl
import pytest

from loadstone.plan.store import Row
from loadstone.read.schema import REQUESTS
from loadstone.recording import WireEnd
from loadstone.sim.api.asked import Asked, Choice
from loadstone.virtual import table
from loadstone.virtual.servers import Call, Generated
from loadstone.virtual.table import Parts, ended, frame, refused


def call(request=0, times=(10, 20, 30), *, choices=1, reasoning=0, **asked):
    """A request sent at 5, and the sequences that answered it."""
    row = Row(request, 0, 0, 40, 2, 3, request, 0, 0)
    found = Call(request + 1, row, 4, 0)
    found.sent_ns = 5
    one = Choice(["a", "b"], 3, 0, "length", reasoning)
    asked = {"stream": True, "usage_at_end": True, **asked}
    found.asked = Asked("chat", "sim", (one,) * choices, 2, **asked)
    for number in range(choices):
        sequence = Generated(2, 3)
        sequence.note_times(array("q", [at_ns + number for at_ns in times]))
        found.sequences.append(sequence)
    return found


def only(found):
    return frame([found]).to_dicts()[0]


def test_a_part_has_the_columns_of_the_table():
    part = frame([ended(call(), WireEnd.COMPLETE, 30, "x-0", True)])
    assert dict(part.schema) == {name: pl.Series([], dtype=dtype).dtype for name, dtype in REQUESTS.items()}


def test_a_whole_answer():
    row = only(ended(call(), WireEnd.COMPLETE, 30, "x-0", True))
    told = ("outcome", "fault", "http_status", "finish_reason", "streamed", "coalesced", "choices")
    assert [row[name] for name in told] == ["ok-length", None, 200, "length", True, False, 1]
    instants = (
        "due_ns",
        "sent_ns",
        "written_ns",
        "answered_ns",
        "first_ns",
        "first_answer_ns",
        "last_ns",
        "done_ns",
    )
    assert [row[name] for name in instants] == [4, 5, 5, 10, 10, 10, 30, 30]
    assert row["arrival_ns"] == row["read_ns"] == [10, 20, 30]
    assert (row["output_tokens"], row["output_tokens_source"]) == (3, "usage")
    unknown = ("connect_ns", "tcp_ns", "connected_ns", "response_bytes", "text_chars", "chunk_tokens")
    assert [row[name] for name in (*unknown, "chunk_choice", "draft_tokens", "items")] == [None] * 9


@pytest.mark.parametrize(("counted", "tokens", "source"), [(True, 2, "tokenizer"), (False, None, None)])
def test_an_answer_that_is_cut_off_has_no_usage(counted, tokens, source):
    row = only(ended(call(times=(10, 20)), WireEnd.CUT, 25, "x-0", counted))
    assert (row["outcome"], row["finish_reason"], row["done_ns"]) == ("cut", None, 25)
    assert (row["output_tokens"], row["output_tokens_source"], row["usage_completion_tokens"]) == (
        tokens,
        source,
        None,
    )


def test_with_running_counts_it_has_one_as_far_as_it_came():
    row = only(ended(call(times=(10, 20), usage_in_chunks=True), WireEnd.CUT, 25, "x-0", True))
    assert (row["output_tokens"], row["output_tokens_source"], row["chunk_tokens"]) == (2, "usage", [1, 1])


def test_what_had_no_token_yet_is_no_answer():
    row = only(ended(call(times=()), WireEnd.TIMEOUT_FIRST_TOKEN, 25, "x-0", True))
    assert row["outcome"] == "timeout-first-token"
    assert [row[name] for name in ("http_status", "streamed", "first_ns", "output_tokens", "choices")] == [
        None
    ] * 5
    assert row["arrival_ns"] == []


def test_the_answer_begins_behind_the_reasoning():
    row = only(ended(call(reasoning=2), WireEnd.COMPLETE, 30, "x-0", True))
    assert (row["first_ns"], row["first_answer_ns"], row["usage_reasoning_tokens"]) == (10, 30, 2)
    assert only(ended(call(reasoning=3), WireEnd.COMPLETE, 30, "x-0", True))["first_answer_ns"] is None


def test_choices_lie_in_the_order_in_which_their_tokens_came():
    row = only(ended(call(choices=2), WireEnd.COMPLETE, 31, "x-0", True))
    assert row["arrival_ns"] == [10, 11, 20, 21, 30, 31]
    assert row["chunk_choice"] == [0, 1, 0, 1, 0, 1]


def test_an_answer_that_is_not_streamed_has_no_tokens_with_times():
    row = only(ended(call(stream=False), WireEnd.COMPLETE, 30, "x-0", True))
    assert [row[name] for name in ("streamed", "first_ns", "coalesced")] == [False, None, None]
    assert (row["arrival_ns"], row["output_tokens"], row["done_ns"]) == ([], 3, 30)


def test_a_refusal_has_its_status_and_words():
    row = only(refused(call(), "http-invalid", "HTTP 400: no", 400, 9, "x-0"))
    assert [row[name] for name in ("outcome", "fault", "http_status", "sent_ns", "done_ns")] == [
        "http-invalid",
        "HTTP 400: no",
        400,
        5,
        9,
    ]


def test_parts_are_written_when_they_are_full_and_ordered(tmp_path, monkeypatch):
    monkeypatch.setattr(table, "PART_REQUESTS", 2)
    parts = Parts(tmp_path)
    for request in (3, 1, 2):
        parts.add(ended(call(request), WireEnd.COMPLETE, 30, f"x-{request}", True))
    assert [path.name for path in tmp_path.iterdir()] == ["d0-0.parquet"]
    parts.flush()
    parts.flush()
    found = [pl.read_parquet(path)["request"].to_list() for path in sorted(tmp_path.iterdir())]
    assert found == [[1, 3], [2]]
