"""`/v1/responses`: typed events in their order, items, and the response at the end."""

from __future__ import annotations

import json
from typing import Any

from tests.sim.api.told import RESPONSES, asked, events, pieces, refused, whole

from loadstone.sim.options import SimOptions

THINKS = SimOptions(model="m", reasoning=2)
TOOLS = [{"type": "function", "name": "f", "parameters": {"properties": {"q": {"type": "string"}}}}]
PART = {"type": "output_text", "text": "", "annotations": [], "logprobs": []}


def test_the_events_of_a_message() -> None:
    found = asked(RESPONSES, stream=True, max_output_tokens=2)
    told = events(found, cached=3)
    at = {"item_id": "msg_0000000000000001", "output_index": 0, "content_index": 0}
    item = {"id": at["item_id"], "type": "message", "role": "assistant"}
    assert told[2:-1] == [
        {
            "type": "response.output_item.added", "sequence_number": 2, "output_index": 0,
            "item": {**item, "status": "in_progress", "content": []},
        },
        {"type": "response.content_part.added", "sequence_number": 3, **at, "part": PART},
        {"type": "response.output_text.delta", "sequence_number": 4, **at, "delta": " it", "logprobs": []},
        {"type": "response.output_text.delta", "sequence_number": 5, **at, "delta": " turn", "logprobs": []},
        {"type": "response.output_text.done", "sequence_number": 6, **at, "text": " it turn", "logprobs": []},
        {"type": "response.content_part.done", "sequence_number": 7, **at, "part": {**PART, "text": " it turn"}},
        {
            "type": "response.output_item.done", "sequence_number": 8, "output_index": 0,
            "item": {**item, "status": "incomplete", "content": [{**PART, "text": " it turn"}]},
        },
    ]  # fmt: skip
    assert [event["type"] for event in (told[0], told[1], told[-1])] == [
        "response.created", "response.in_progress", "response.completed",
    ]  # fmt: skip
    assert told[0]["response"] == told[1]["response"]
    assert (told[0]["response"]["status"], told[0]["response"]["usage"]) == ("in_progress", None)
    assert told[-1]["response"] == whole(found, cached=3)


def test_every_event_is_named_before_its_data_and_numbered() -> None:
    found = asked(RESPONSES, THINKS, stream=True, max_output_tokens=4)
    lines = b"".join(pieces(found)).decode().strip().split("\n\n")
    data = [json.loads(line.partition("\ndata: ")[2]) for line in lines]
    assert [line.partition("\n")[0] for line in lines] == [f"event: {event['type']}" for event in data]
    assert [event["sequence_number"] for event in data] == list(range(len(data)))


def test_the_response() -> None:
    found = whole(
        asked(RESPONSES, max_output_tokens=2, instructions="be brief", metadata={"a": "b"}), cached=3
    )
    assert found == {
        "id": "resp_0000000000000001", "object": "response", "created_at": 7, "status": "incomplete", "background": False,
        "error": None, "incomplete_details": {"reason": "max_output_tokens"}, "instructions": "be brief",
        "max_output_tokens": 2, "model": "m", "output": found["output"], "parallel_tool_calls": True,
        "previous_response_id": None, "reasoning": None, "store": False, "temperature": 1.0,
        "text": {"format": {"type": "text"}}, "tool_choice": "auto", "tools": [], "top_p": 1.0, "truncation": "disabled",
        "usage": {
            "input_tokens": 12, "input_tokens_details": {"cached_tokens": 3}, "output_tokens": 2,
            "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 14,
        },
        "metadata": {"a": "b"},
    }  # fmt: skip


def test_an_answer_that_ends_by_itself_is_completed() -> None:
    found = whole(asked(RESPONSES, ignore_eos=False, max_output_tokens=50))
    assert (found["status"], found["incomplete_details"], found["output"][0]["status"]) == (
        "completed",
        None,
        "completed",
    )


def test_reasoning_is_an_item_of_its_own() -> None:
    found = asked(RESPONSES, THINKS, stream=True, max_output_tokens=4)
    kinds = [
        (event["type"].removeprefix("response."), event.get("output_index")) for event in events(found)[2:-1]
    ]
    assert kinds == [
        ("output_item.added", 0), ("content_part.added", 0), ("reasoning_text.delta", 0), ("reasoning_text.delta", 0),
        ("reasoning_text.done", 0), ("content_part.done", 0), ("output_item.done", 0),
        ("output_item.added", 1), ("content_part.added", 1), ("output_text.delta", 1), ("output_text.delta", 1),
        ("output_text.done", 1), ("content_part.done", 1), ("output_item.done", 1),
    ]  # fmt: skip
    thought, message = whole(found)["output"]
    assert (thought["type"], thought["status"], thought["summary"]) == ("reasoning", "completed", [])
    assert (message["type"], message["status"]) == ("message", "incomplete")
    assert whole(found)["usage"]["output_tokens_details"] == {"reasoning_tokens": 2}
    only = whole(asked(RESPONSES, SimOptions(model="m", reasoning="all"), max_output_tokens=4))["output"]
    assert [item["type"] for item in only] == ["reasoning"]


def test_a_called_function_is_an_item_without_parts() -> None:
    found = asked(
        RESPONSES,
        stream=True,
        max_output_tokens=4,
        tools=TOOLS,
        tool_choice={"type": "function", "name": "f"},
    )
    kinds = [event["type"].removeprefix("response.") for event in events(found)[2:-1]]
    assert kinds == [
        "output_item.added", *["function_call_arguments.delta"] * 4, "function_call_arguments.done", "output_item.done",
    ]  # fmt: skip
    said = "".join(event["delta"] for event in events(found) if "delta" in event)
    assert whole(found)["output"] == [
        {
            "id": "fc_0000000000000001", "type": "function_call", "status": "completed",
            "call_id": "call_0000000000000001", "name": "f", "arguments": said,
        }
    ]  # fmt: skip
    assert whole(found)["tools"] == TOOLS
    assert whole(found)["tool_choice"]["name"] == "f"
    assert list(json.loads(said)) == ["q"]


def test_the_input_is_counted_like_messages() -> None:
    items: list[Any] = [
        {"role": "user", "content": [{"type": "input_text", "text": "a b"}]},
        {"type": "function_call", "name": "f", "arguments": "{}", "call_id": "c"},
        {"type": "function_call_output", "call_id": "c", "output": "x y z"},
        {"type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": "r"}]},
    ]
    assert asked(RESPONSES).prompt_tokens == 6
    assert asked(RESPONSES, instructions="be brief").prompt_tokens == 12
    assert asked(RESPONSES, input=items).prompt_tokens == 2 + 2 + 3 + 1 + 4 * 4
    assert refused(RESPONSES, input=[{"type": "item_reference", "id": "x"}])["param"] == "input"
