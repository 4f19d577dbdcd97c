"""Messages as prompt tokens."""

from __future__ import annotations

import tracemalloc
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadstone.sim.api.errors import ApiError
from loadstone.sim.api.messages import MOST_TOOLS_BYTES, Function, Message, Part, ToolCall, of_tools, tokens
from loadstone.sim.words import SEPARATOR

END = [SEPARATOR] * 4


def test_separators_follow_the_words_of_every_message() -> None:
    parts = [Part("text", "a b"), Part("image_url"), Part("text", "c")]
    found = tokens([Message("user", "hello there"), Message("user", parts), Message("assistant")])
    assert found == ["hello", "there", *END, "a", "b", "c", *END, *END]


def test_calls_of_earlier_answers_are_words_too() -> None:
    call = ToolCall(Function("f", '{"a": "b c"}'))
    assert tokens([Message("assistant", None, [call, ToolCall()])]) == ["f", '{"a":', '"b', 'c"}', *END]


def test_tools_come_before_all_messages() -> None:
    assert of_tools([]) == of_tools(None) == []
    assert of_tools([{"a": 1}]) == ["[", "{", '"a":', "1", "}", "]", *END]


_TEXTS = st.text(st.sampled_from('ab "\\,:[]{}\n\u2028')) | st.text()
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.floats(allow_nan=False) | _TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_TEXTS, inner, max_size=4),
)


@given(st.lists(_JSON, min_size=1))
def test_the_words_of_tools_are_those_of_their_json_over_lines(tools: list[Any]) -> None:
    written = msgspec.json.format(msgspec.json.encode(tools), indent=1)
    assert of_tools(tools) == [*written.decode().split(), *END]


def test_deep_tools_take_no_more_memory_than_flat_ones() -> None:
    deep: Any = [1] * 10_000
    for _ in range(900):
        deep = [deep]
    tracemalloc.start()
    assert len(of_tools(deep)) == 10_000 + 2 * 901 + 4
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4_000_000


def test_tools_have_a_bound() -> None:
    fits = "a" * (MOST_TOOLS_BYTES - 4)
    assert of_tools([fits]) == ["[", f'"{fits}"', "]", *END]
    with pytest.raises(ApiError, match="tools: 1048577 bytes as JSON are more than 1048576; give fewer"):
        of_tools([fits + "a"])
