"""What an endpoint of images, embeddings, rankings or sound fills in comes through to the table and to the metrics."""

from __future__ import annotations

import types
from typing import Any

import msgspec
import polars as pl
import pytest

from loadstone import registry
from loadstone.endpoints import Reply, Usage, _error


class Body(_error.Fields):
    data: list[Any] | None = None
    seconds: float | None = None


def whole(answer):
    items = None if answer.data is None else len(answer.data)
    usage = Usage(prompt_tokens=4, audio_s=answer.seconds)
    return Reply(items=items, text=["heard"] if answer.seconds else [], usage=usage, ended=True)


PICTURES = types.SimpleNamespace(END_MARK=b"", Event=Body, Answer=Body, whole=whole)


@pytest.fixture(autouse=True)
def _endpoint(monkeypatch):
    load = registry.load
    monkeypatch.setattr(
        registry, "load", lambda kind, name: PICTURES if kind == "endpoints" else load(kind, name)
    )


def answered(run, body):
    data = msgspec.json.encode(body)
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(data)
    run.recorder().flight(0, [(1_000, head), (2_000, data)], sent_ns=500)
    run.decode(streaming=False)
    (part,) = run.parts.glob("d0-*.parquet")
    (row,) = pl.read_parquet(part).to_dicts()
    return row


def test_items_without_a_word_are_a_success_and_have_no_output_tokens(run):
    row = answered(run, {"data": [{"index": 0}, {"index": 1}, {"index": 2}]})
    assert (row["outcome"], row["fault"], row["items"], row["audio_s"]) == ("ok", None, 3, None)
    assert (row["output_tokens"], row["output_tokens_source"], row["usage_prompt_tokens"]) == (None, None, 4)
    assert (row["answered_ns"], row["done_ns"]) == (1_000, 2_000)


def test_no_item_is_an_empty_answer(run):
    row = answered(run, {"data": []})
    assert (row["outcome"], row["items"]) == ("empty", 0)


def test_seconds_of_sound(run):
    row = answered(run, {"seconds": 2.5})
    assert (row["outcome"], row["items"], row["audio_s"]) == ("ok", None, 2.5)
