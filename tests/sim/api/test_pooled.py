"""Embeddings, ranks and scores: requests that bring no text."""

from __future__ import annotations

import base64
import math
import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.sim.api.told import asked, refused, whole

from loadstone.sim.api.embeddings import vector
from loadstone.sim.api.rerank import score
from loadstone.sim.api.spell import spell
from loadstone.sim.options import SimOptions

EMBEDDINGS = "/v1/embeddings"
SMALL = SimOptions(model="m", embedding_dimensions=4)


def test_an_embedding() -> None:
    found = whole(asked(EMBEDDINGS, SMALL, input="hi you"))
    assert found == {
        "id": "embd-0000000000000001", "object": "list", "created": 7, "model": "m",
        "data": [
            {
                "object": "embedding", "index": 0,
                "embedding": [0.12282013148069382, 0.4152698814868927, 0.5526084303855896, 0.7121025919914246],
            }
        ],
        "usage": {"prompt_tokens": 2, "total_tokens": 2},
    }  # fmt: skip


def test_base64_has_the_same_numbers() -> None:
    numbers = whole(asked(EMBEDDINGS, SMALL, input="hi you"))["data"][0]["embedding"]
    packed = whole(asked(EMBEDDINGS, SMALL, input="hi you", encoding_format="base64"))["data"][0]["embedding"]
    assert list(struct.unpack("<4f", base64.b64decode(packed))) == numbers


@given(st.text() | st.lists(st.integers(0, 2**63 - 1)), st.integers(1, 300))
def test_vectors_have_unit_length(text: Any, dimensions: int) -> None:
    assert math.hypot(*vector(text, dimensions)) == pytest.approx(1)


def test_other_texts_have_other_vectors() -> None:
    one, other = vector("one", 1024), vector("other", 1024)
    assert abs(sum(a * b for a, b in zip(one, other, strict=True))) < 0.2


@pytest.mark.parametrize(
    ("given_input", "tokens"),
    [("a b", [2]), (["a b", "c"], [2, 1]), ([7, 8, 9], [3]), ([[7], [8, 9]], [1, 2])],
)
def test_every_text_is_a_sequence_of_its_own(given_input: Any, tokens: list[int]) -> None:
    found = asked(EMBEDDINGS, SMALL, input=given_input)
    assert [len(choice.prompt) for choice in found.choices] == tokens
    assert [choice.output_tokens for choice in found.choices] == [1] * len(tokens)
    assert (found.prompt_tokens, found.stream, found.generates, found.end) == (
        sum(tokens),
        False,
        False,
        "done",
    )
    assert len(whole(found)["data"]) == len(tokens)


def test_fewer_dimensions_may_be_asked_for_but_no_more() -> None:
    assert len(whole(asked(EMBEDDINGS, SMALL, input="a", dimensions=3))["data"][0]["embedding"]) == 3
    assert len(whole(asked(EMBEDDINGS, input="a"))["data"][0]["embedding"]) == 1024
    assert (
        refused(EMBEDDINGS, SMALL, input="a", dimensions=5)["message"]
        == "dimensions = 5 is above the model's 4"
    )


@pytest.mark.parametrize(
    ("given_input", "message"),
    [
        ([], "there is nothing in it; give at least one text"),
        ("", "one of the texts is empty"),
        (["a", " "], "one of the texts is empty"),
        (["a", 1], "input has to be texts, or token ids, or lists of token ids"),
        (["a"] * 2049, "2049 texts are more than 2048; send several requests"),
    ],
)
def test_what_cannot_be_embedded_is_refused(given_input: Any, message: str) -> None:
    assert refused(EMBEDDINGS, SMALL, input=given_input)["message"] == message


def test_a_text_longer_than_the_model_is_refused() -> None:
    short = SimOptions(model="m", max_model_len=3)
    assert "maximum context length is 3 tokens" in refused(EMBEDDINGS, short, input=["a", "b c d"])["message"]


@pytest.mark.parametrize("path", ["/rerank", "/v1/rerank", "/v2/rerank"])
def test_ranks(path: str) -> None:
    call = {"query": "north stone", "documents": ["the stone", {"text": "a north stone"}, "x"]}
    found = asked(path, **call)
    assert [len(choice.prompt) for choice in found.choices] == [8, 9, 7]
    scores = [score("north stone", text) for text in ("the stone", "a north stone", "x")]
    assert whole(found) == {
        "id": "rerank-0000000000000001", "model": "m", "usage": {"prompt_tokens": 24, "total_tokens": 24},
        "results": [
            {"index": 1, "document": {"text": "a north stone"}, "relevance_score": scores[1]},
            {"index": 0, "document": {"text": "the stone"}, "relevance_score": scores[0]},
            {"index": 2, "document": {"text": "x"}, "relevance_score": scores[2]},
        ],
    }  # fmt: skip
    assert [one["index"] for one in whole(asked(path, **call, top_n=1))["results"]] == [1]
    assert "document" not in whole(asked(path, **call, return_documents=False))["results"][0]


@pytest.mark.parametrize("path", ["/score", "/v1/score"])
def test_scores_of_one_text_with_many_or_of_pairs(path: str) -> None:
    assert whole(asked(path, text_1="a b", text_2=["a", "c"])) == {
        "id": "score-0000000000000001", "object": "list", "created": 7, "model": "m",
        "data": [
            {"index": 0, "object": "score", "score": score("a b", "a")},
            {"index": 1, "object": "score", "score": score("a b", "c")},
        ],
        "usage": {"prompt_tokens": 14, "total_tokens": 14},
    }  # fmt: skip
    pairs = whole(asked(path, text_1=["a", "b"], text_2=["c", "d"]))["data"]
    assert [pair["score"] for pair in pairs] == [score("a", "c"), score("b", "d")]
    assert (
        refused(path, text_1=["a", "b"], text_2="c")["message"]
        == "text_1 has 2 texts and text_2 1; one, or as many"
    )


@given(st.text(), st.text())
def test_a_score_is_between_0_and_1_and_the_share_of_common_words_counts_most(
    first: str, second: str
) -> None:
    assert 0 <= score(first, second) < 1
    assert score("a b", "b a") > 0.9 > score("a b", "a") > 0.45 > 0.1 > score("a b", "c")


def test_nothing_of_it_is_streamed() -> None:
    spelt = spell(asked(EMBEDDINGS, SMALL, input="a"), 1, 7)
    assert spelt.opening() + spelt.token(0) + spelt.ending() + spelt.closing() == b""


def test_an_answer_has_a_bound() -> None:
    large = SimOptions(model="m", embedding_dimensions=65_536)
    assert len(asked(EMBEDDINGS, large, input=["a"] * 64).choices) == 64
    assert refused(EMBEDDINGS, large, input=["a"] * 65)["message"] == (
        "65 vectors of 65536 numbers are more than 4194304 numbers; send several requests"
    )
    assert len(asked(EMBEDDINGS, large, input=["a"] * 2048, dimensions=2048).choices) == 2048


def test_a_question_counts_with_each_of_its_documents() -> None:
    question = "a" * (1 << 20)
    assert len(asked("/rerank", query=question, documents=["d"] * 15).choices) == 15
    for path, call in (
        ("/rerank", {"query": question, "documents": ["d"] * 16}),
        ("/score", {"text_1": question, "text_2": ["d"] * 16}),
    ):
        assert refused(path, **call)["message"] == (
            "the pairs have 16777232 characters, more than 16777216; send several requests"
        )


@pytest.mark.parametrize(
    ("path", "call"),
    [
        (EMBEDDINGS, {"input": ["a", "b", "c"]}),
        ("/rerank", {"query": "q", "documents": ["a", "b", "c"]}),
        ("/score", {"text_1": "q", "text_2": ["a", "b", "c"]}),
    ],
)
def test_they_are_spelt_text_by_text(path: str, call: dict[str, Any]) -> None:
    spelt = spell(asked(path, SMALL, **call), 1, 7)
    slices = list(spelt.slices())
    assert len(slices) >= 4
    assert b"".join(slices) == spelt.whole()
