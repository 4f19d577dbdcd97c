"""`/v1/chat/completions`: streams and bodies, to the last field."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.sim.api.told import CHAT, HELLO, asked, events, whole

from loadstone.sim.options import SimOptions

FACTS = {"id": "chatcmpl-0000000000000001", "created": 7, "model": "m"}
TOOLS = [
    {"type": "function", "function": {"name": "f", "parameters": {"properties": {"q": {"type": "string"}}}}}
]


def event(index: int, delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
    choice = {"index": index, "delta": delta, "logprobs": None, "finish_reason": finish}
    return {**FACTS, "object": "chat.completion.chunk", "choices": [choice]}


def test_a_stream_is_role_tokens_finish_and_usage() -> None:
    found = asked(stream=True, max_tokens=2, stream_options={"include_usage": True})
    assert events(found, cached=4) == [
        event(0, {"role": "assistant", "content": ""}),
        event(0, {"content": " it"}),
        event(0, {"content": " turn"}),
        event(0, {}, "length"),
        {
            **FACTS, "object": "chat.completion.chunk", "choices": [],
            "usage": {
                "prompt_tokens": 6, "total_tokens": 8, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 4},
            },
        },
    ]  # fmt: skip


def test_without_asking_there_is_no_usage() -> None:
    assert all("usage" not in found for found in events(asked(stream=True, max_tokens=2)))


def test_a_whole_answer() -> None:
    assert whole(asked(max_tokens=2)) == {
        **FACTS, "object": "chat.completion",
        "choices": [
            {
                "index": 0, "message": {"role": "assistant", "content": " it turn", "reasoning_content": None},
                "logprobs": None, "finish_reason": "length",
            }
        ],
        "usage": {"prompt_tokens": 6, "total_tokens": 8, "completion_tokens": 2},
    }  # fmt: skip


def test_choices_are_told_apart_by_their_index_and_counted_together() -> None:
    found = asked(n=2, stream=True, max_tokens=2, stream_options={"include_usage": True})
    first, second = ([f" {word}" for word in texts.split()] for texts in ("it turn", "it did"))
    assert events(found)[:-1] == [
        event(0, {"role": "assistant", "content": ""}),
        event(1, {"role": "assistant", "content": ""}),
        event(0, {"content": first[0]}),
        event(1, {"content": second[0]}),
        event(0, {"content": first[1]}),
        event(0, {}, "length"),
        event(1, {"content": second[1]}),
        event(1, {}, "length"),
    ]
    assert events(found)[-1]["usage"] == {"prompt_tokens": 6, "total_tokens": 10, "completion_tokens": 4}
    assert [choice["index"] for choice in whole(found)["choices"]] == [0, 1]


def test_continuous_usage_counts_up_over_all_choices() -> None:
    wishes = {"include_usage": True, "continuous_usage_stats": True}
    found = events(asked(n=2, stream=True, max_tokens=2, stream_options=wishes))
    assert [e["usage"]["completion_tokens"] for e in found if "usage" in e] == [1, 2, 3, 4, 4]
    assert found[2]["usage"] == {"prompt_tokens": 6, "total_tokens": 7, "completion_tokens": 1}


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
@pytest.mark.parametrize(("reasoning", "thoughts"), [(2, 2), ("all", 5)])
def test_reasoning_comes_first_in_a_field_of_its_own(field: Any, reasoning: Any, thoughts: int) -> None:
    found = asked(
        CHAT, SimOptions(model="m", reasoning=reasoning, reasoning_field=field), stream=True, max_tokens=5
    )
    deltas = [e["choices"][0]["delta"] for e in events(found)[1:-1]]
    assert [name for delta in deltas for name in delta] == [field] * thoughts + ["content"] * (5 - thoughts)
    body = whole(found)
    assert body["choices"][0]["message"][field] == "".join(delta.get(field, "") for delta in deltas)
    assert body["usage"]["completion_tokens_details"] == {"reasoning_tokens": thoughts}


def test_a_stop_string_is_named_and_never_shown() -> None:
    found = asked(max_tokens=50, stop=["xx", "came t"], stream=True)
    *texts, end = [e["choices"][0] for e in events(found)[1:]]
    assert [choice["delta"]["content"] for choice in texts][-2:] == [" ", ""]
    assert end["stop_reason"] == "came t"
    body = whole(found)
    assert body["choices"][0]["stop_reason"] == "came t"
    assert body["choices"][0]["finish_reason"] == end["finish_reason"] == "stop"
    assert body["choices"][0]["message"]["content"] == " it turn and it "
    assert body["usage"]["completion_tokens"] == 6


def test_a_called_tool_is_a_stream_of_arguments() -> None:
    found = asked(stream=True, max_tokens=4, tools=TOOLS, tool_choice="required")
    first, *others, end = [e["choices"][0] for e in events(found)[1:]]
    name = {"id": "call-0000000000000001-0", "type": "function"}
    assert first["delta"] == {
        "tool_calls": [{"index": 0, **name, "function": {"name": "f", "arguments": '{"q": "'}}]
    }
    assert [list(other["delta"]["tool_calls"][0]) for other in others] == [["index", "function"]] * 3
    assert (end["delta"], end["finish_reason"]) == ({}, "tool_calls")
    said = "".join(choice["delta"]["tool_calls"][0]["function"]["arguments"] for choice in (first, *others))
    message = whole(found)["choices"][0]["message"]
    assert message == {
        "role": "assistant", "content": None, "reasoning_content": None,
        "tool_calls": [{**name, "function": {"name": "f", "arguments": said}}],
    }  # fmt: skip
    assert list(json.loads(said)) == ["q"]


def test_a_tool_is_called_by_name_or_when_the_server_likes_to() -> None:
    by_name = {"type": "function", "function": {"name": "f"}}
    assert asked(tools=TOOLS, tool_choice=by_name).choices[0].finish == "tool_calls"
    assert asked(tools=TOOLS).choices[0].call is None
    assert asked(CHAT, SimOptions(model="m", tool_calls=True), tools=TOOLS).choices[0].finish == "tool_calls"
    thinks = SimOptions(model="m", tool_calls=True, reasoning="all")
    assert asked(CHAT, thinks, tools=TOOLS).choices[0].call is None


def test_log_probabilities_travel_with_their_tokens() -> None:
    found = asked(stream=True, max_tokens=3, logprobs=True, top_logprobs=2)
    streamed = [e["choices"][0]["logprobs"] for e in events(found)[1:-1]]
    content = whole(found)["choices"][0]["logprobs"]["content"]
    assert [one for part in streamed for one in part["content"]] == content
    assert [one["token"] for one in content] == [" it", " turn", " and"]
    assert content[0]["logprob"] == -0.25
    assert [len(one["top_logprobs"]) for one in content] == [2, 2, 2]
    assert events(found)[-1]["choices"][0]["logprobs"] is None


def test_an_awkward_model_name_is_spelled_right() -> None:
    name = 'a@"\\é'
    found = asked(CHAT, SimOptions(model=name), model=name, stream=True, max_tokens=1)
    assert [e["model"] for e in events(found)] == [name] * 3


def test_the_prompt_is_counted_in_words_and_separators() -> None:
    parts = {"role": "user", "content": [{"type": "text", "text": "a b"}, {"type": "text", "text": "c"}]}
    assert asked().prompt_tokens == 2 + 4
    assert asked(messages=[HELLO, parts, {"role": "assistant", "content": None}]).prompt_tokens == 5 + 3 * 4
