from __future__ import annotations

import msgspec
import pytest

from loadstone.endpoints import Ask, Usage, chat, completions
from loadstone.plan.turn import Turn


def fold(*events):
    return chat.fold(msgspec.convert(list(events), list[chat.Event]))


def delta(usage=None, finish_reason=None, **fields):
    return {"choices": [{"delta": fields, "finish_reason": finish_reason}], "usage": usage}


@pytest.mark.parametrize(
    "event",
    [
        {},
        {"choices": None},
        {"choices": []},
        {"choices": [{}]},
        {"choices": [{"delta": None}]},
        delta(role="assistant"),
        delta(content=""),
        delta(content=None, reasoning_content=None, tool_calls=None),
        delta(reasoning=""),
        delta(tool_calls=[]),
        delta(tool_calls=[{"index": 0}]),
        delta(tool_calls=[{"function": {"name": None, "arguments": ""}}]),
    ],
)
def test_what_brings_no_token(event):
    reply = fold(event, delta(content="x"))
    assert (reply.output, reply.text, reply.error) == ([1], ["x"], None)
    assert not chat.begun(b"data: " + msgspec.json.encode(event) + b"\n\n")


@pytest.mark.parametrize(
    ("event", "channel"),
    [
        (delta(content="x"), "text"),
        (delta(refusal="x"), "text"),
        (delta(reasoning_content="x"), "reasoning"),
        (delta(reasoning="x"), "reasoning"),
        (delta(reasoning="x", reasoning_content="x"), "reasoning"),
        (delta(tool_calls=[{"function": {"name": "x"}}]), "tool_calls"),
        (delta(tool_calls=[{"function": {"arguments": "x"}}]), "tool_calls"),
        (delta(function_call={"name": "x"}), "tool_calls"),
    ],
)
def test_what_brings_output(event, channel):
    reply = fold({}, event)
    assert reply.output == [1]
    assert getattr(reply, channel) == ["x"]
    assert reply.first_answer == (None if channel == "reasoning" else 1)
    assert chat.begun(b"data: " + msgspec.json.encode(event) + b"\n\n")


def test_begun_is_not_taken_in_by_text_about_itself():
    quoted = delta(role='say "content":"x" or "tool_calls":[{"name":"y"')
    assert not chat.begun(b"data: " + msgspec.json.encode(quoted) + b"\n\n")


@pytest.mark.parametrize(
    "spelling", [b'"content" : "x"', b'"content":"\\n"', b'"reasoning_content": "\xe2\x80\xa6"']
)
def test_begun_knows_other_spellings_of_json(spelling):
    assert chat.begun(b'data: {"choices": [{"delta": {%s}}]}\n\n' % spelling)


@pytest.mark.parametrize(
    "mark", [b"data: [DONE]\n\n", b"data:[DONE]\r\n\r\n", b"x\n\ndata: [DONE]\n", b"data: [DONE]"]
)
def test_the_end_mark(mark):
    assert chat.ended(mark)
    assert completions.ended(mark)


@pytest.mark.parametrize(
    "data", [b'data: {"x":"data: [DONE]"}\n\n', b"data: [DONE", b": [DONE]\n", b"", b"data: [DONE]x\n"]
)
def test_what_is_no_end_mark(data):
    assert not chat.ended(data)


def test_the_last_usage_wins():
    reply = fold(
        delta(content="a", usage={"completion_tokens": 1}),
        delta(content="b", usage={"prompt_tokens": 3, "completion_tokens": 2}),
    )
    assert reply.usage == Usage(prompt_tokens=3, completion_tokens=2)


@pytest.mark.parametrize(
    ("counts", "running"),
    [
        ([1, 2, 2, 7], [1, 2, 2, 7]),
        ([None, None, 3], None),
        ([3], [3]),
        ([0, 1, 2], None),
        ([4, 3], None),
        ([None], None),
    ],
)
def test_running_counts_have_to_be_whole_and_rising(counts, running):
    events = [delta(content="x", usage=None if n is None else {"completion_tokens": n}) for n in counts]
    assert fold(*events).tokens_after == running


def test_every_choice_adds_to_the_answer():
    both = {"choices": [{"delta": {"content": "a"}}, {"delta": {"content": "b"}, "finish_reason": "stop"}]}
    reply = fold(both, {"choices": [{"index": 1, "delta": {"content": "c"}}]})
    assert (reply.output, reply.text, reply.finish_reason) == ([0, 1], ["a", "b", "c"], "stop")


@pytest.mark.parametrize("reason", ["error", "abort"])
def test_an_engine_that_gave_up_is_an_error(reason):
    assert (
        fold(delta(content="x"), delta(finish_reason=reason)).error == f"the server finished with {reason!r}"
    )


def test_tool_arguments_given_as_an_object():
    answer = {"choices": [{"message": {"tool_calls": [{"function": {"name": "f", "arguments": {"a": 1}}}]}}]}
    assert chat.whole(msgspec.convert(answer, chat.Event)).tool_calls == ['f{"a":1}']


def test_the_last_turn_sets_the_limit():
    body = chat.body([Turn(text="a", max_tokens=1), Turn(text="b", max_tokens=2)], Ask(model="m"))
    assert body["max_completion_tokens"] == 2
    assert [message["content"] for message in body["messages"]] == ["a", "b"]


def test_extra_inputs_win_over_everything():
    ask = Ask(
        model="m",
        streaming=True,
        extra={"model": "other", "messages": [], "stream": False, "stream_options": None},
    )
    assert chat.body([Turn(text="a")], ask) == {"model": "other", "messages": [], "stream": False}


def test_several_prompts_of_a_completion_are_a_list():
    body = completions.body([Turn(text="a"), Turn(token_ids=(1,))], Ask(model="m"))
    assert body["prompt"] == ["a", [1]]
