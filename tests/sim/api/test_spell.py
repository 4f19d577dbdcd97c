"""A stream and a body say the same, whatever was asked for."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.sim.api.told import CHAT, COMPLETIONS, RESPONSES, asked, events, whole

from loadstone.errors import UsageError
from loadstone.sim.api.asked import Asked
from loadstone.sim.api.spell import PATHS, met
from loadstone.sim.options import SimOptions
from loadstone.sim.words import PASSAGE

TOOLS = [{"type": "function", "name": "f", "function": {"name": "f"}}]
stops = st.lists(
    st.builds(lambda at, size: PASSAGE[at : at + size], st.integers(0, 200), st.integers(1, 12)), max_size=3
)
calls = st.fixed_dictionaries(
    {"ignore_eos": st.booleans(), "stop": stops, "seed": st.integers(0, 99), "stream": st.just(True)},
    optional={
        "min_tokens": st.integers(0, 20),
        "tools": st.just(TOOLS),
        "tool_choice": st.sampled_from(["none", "required"]),
    },
)
limits = st.integers(20, 90)
servers = st.builds(
    lambda reasoning, calls: SimOptions(model="m", reasoning=reasoning, tool_calls=calls),
    st.sampled_from([0, 1, 7, "all"]),
    st.booleans(),
)


def fitting(call: dict[str, Any]) -> dict[str, Any]:
    return call if "tools" in call else {name: value for name, value in call.items() if name != "tool_choice"}


def told(found: Asked) -> tuple[list[dict[str, str]], list[str | None], Any]:
    """What a stream of choices says: texts by field for each choice, why each ended, the usage."""
    texts: list[dict[str, str]] = [{} for _ in found.choices]
    ends: list[str | None] = [None for _ in found.choices]
    *parts, last = events(found)
    for part in parts:
        choice = part["choices"][0]
        said = dict(choice.get("delta", {"content": choice.get("text")}))
        said.pop("role", None)
        for call in said.pop("tool_calls", []):
            said["arguments"] = call["function"]["arguments"]
        for field, text in said.items():
            texts[choice["index"]][field] = texts[choice["index"]].get(field, "") + text
        ends[choice["index"]] = choice["finish_reason"] or ends[choice["index"]]
    return texts, ends, last["usage"]


@given(
    st.sampled_from([CHAT, COMPLETIONS]),
    servers,
    calls,
    limits,
    st.integers(1, 4),
    st.none() | st.integers(0, 2),
)
@example(
    CHAT,
    SimOptions(model="m", reasoning=1),
    {
        "ignore_eos": False,
        "seed": 6,
        "tool_choice": "required",
        "tools": [{"type": "function", "name": "f", "function": {"name": "f"}}],
    },
    20,
    2,
    None,
)  # the first choice is all reasoning and calls nothing, the second one calls
def test_lists_of_choices(
    path: str, server: SimOptions, call: dict[str, Any], limit: int, n: int, logprobs: int | None
) -> None:
    more: dict[str, Any] = {} if logprobs is None else {"logprobs": logprobs}
    if path == CHAT and logprobs is not None:
        more = {"logprobs": True, "top_logprobs": logprobs}
    wishes = {"include_usage": True}
    found = asked(path, server, max_tokens=limit, n=n, stream_options=wishes, **fitting(call), **more)
    texts, ends, usage = told(found)
    body = whole(found)
    assert [choice["finish_reason"] for choice in body["choices"]] == ends
    assert body["usage"] == usage
    assert usage["completion_tokens"] == found.output_tokens
    for choice, text in zip(body["choices"], texts, strict=True):
        message = choice.get("message", {"content": choice.get("text")})
        expected = {
            "content": message["content"] or "",
            "reasoning_content": message.get("reasoning_content") or "",
            "arguments": "".join(one["function"]["arguments"] for one in message.get("tool_calls", [])),
        }
        assert {field: text.get(field, "") for field in expected} == expected
        if choice["finish_reason"] != "tool_calls":
            assert not any(stop in expected["content"] for stop in found.stops if not call.get("min_tokens"))


@given(servers, calls, limits)
def test_responses(server: SimOptions, call: dict[str, Any], limit: int) -> None:
    found = asked(RESPONSES, server, max_output_tokens=limit, **fitting(call))
    texts: dict[int, str] = {}
    for event in events(found):
        if event["type"].endswith(".delta"):
            texts[event["output_index"]] = texts.get(event["output_index"], "") + event["delta"]
        elif event["type"].endswith("_text.done"):
            assert event["text"] == texts[event["output_index"]]
    body = whole(found)
    assert events(found)[-1]["response"] == body
    said = [
        item["arguments"] if item["type"] == "function_call" else item["content"][0]["text"]
        for item in body["output"]
    ]
    assert said == [texts[place] for place in range(len(said))]


def test_every_path_that_engines_answer() -> None:
    assert list(PATHS) == [
        "/v1/chat/completions", "/v1/completions", "/v1/responses", "/v1/embeddings", "/rerank", "/v1/rerank", "/v2/rerank",
        "/score", "/v1/score",
    ]  # fmt: skip


def test_requests_meet_the_length_of_the_engine() -> None:
    assert met(SimOptions(), 100).max_model_len == 100
    with pytest.raises(UsageError, match="output_tokens = many: must be even"):
        met(SimOptions(output_tokens="many"), None)
