"""Messages as prompt tokens."""

from __future__ import annotations

from loadstone.sim.api.messages import Function, Message, Part, ToolCall, of_tools, tokens
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
