"""`/tokenize` and `/detokenize`."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.sim.api.told import CHAT, COMPLETIONS, asked

from loadstone.sim.api import tokenize as module
from loadstone.sim.api.errors import ApiError
from loadstone.sim.api.tokenize import detokenize, tokenize
from loadstone.sim.options import SimOptions
from loadstone.sim.vocabulary import Vocabulary, word_id

OPTIONS = SimOptions(model="m", max_model_len=8192)


def ids(vocabulary: Vocabulary | None = None, **call: Any) -> Any:
    return json.loads(
        tokenize(msgspec.json.encode({"model": "m", **call}), OPTIONS, vocabulary or Vocabulary())
    )


def test_the_shape_is_vllms() -> None:
    assert ids(prompt="a stone") == {"count": 2, "max_model_len": 8192, "tokens": [2, 3], "token_strs": None}
    assert ids(prompt="a lodestone", return_token_strs=True) == {
        "count": 2, "max_model_len": 8192, "tokens": [2, word_id("lodestone")], "token_strs": ["a", "lodestone"],
    }  # fmt: skip


def test_messages_are_tokenized_as_they_are_counted() -> None:
    messages = [{"role": "user", "content": "hello there"}]
    tools = [{"type": "function", "function": {"name": "f", "description": "says nothing"}, "more": [1, {}]}]
    assert ids(messages=messages)["tokens"] == [word_id("hello"), word_id("there"), 1, 1, 1, 1]
    assert (
        ids(messages=messages, tools=tools)["count"]
        == asked(CHAT, messages=messages, tools=tools).prompt_tokens
    )
    assert ids(prompt="a b  c")["count"] == asked(COMPLETIONS, prompt="a b  c").prompt_tokens


@given(st.text())
def test_words_come_back_with_a_blank_between_them(text: str) -> None:
    vocabulary = Vocabulary()
    body = msgspec.json.encode({"model": "m", "tokens": ids(vocabulary, prompt=text)["tokens"]})
    assert json.loads(detokenize(body, OPTIONS, vocabulary)) == {"prompt": " ".join(text.split())}


@pytest.mark.parametrize("raw", [b'"\xff"', b'{"a":"\xc3("}', b"[" * 3000 + b"]" * 3000])
def test_tools_that_are_no_text_are_refused(raw: bytes) -> None:
    body = b'{"messages":[{"role":"user","content":"a"}],"tools":[%b]}' % raw
    with pytest.raises(ApiError, match="the body is not JSON: "):
        tokenize(body, OPTIONS, Vocabulary())


def test_there_is_a_bound_for_one_request(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_WORDS", 2)
    assert ids(prompt="a b")["count"] == 2
    with pytest.raises(ApiError, match="the prompt has 3 tokens, more than 2; send it in parts"):
        ids(prompt="a b c")
    with pytest.raises(ApiError, match="3 ids are more than 2; send them in parts"):
        detokenize(b'{"tokens":[1,2,3]}', OPTIONS, Vocabulary())
