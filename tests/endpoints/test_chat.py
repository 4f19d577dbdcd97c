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
        delta(tool_calls=[None]),
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
    "fields",
    [
        b'"tool_calls":null,"name":"x"',
        b'"tool_calls":[],"name":"x"',
        b'"tool_calls":[{"index":0}],"function":{"name":"x"}',
        b'"tool_calls":[{"name":"x"}]',
        b'"tool_calls":[{"function":{"name":"","arguments":""}}],"name":"x"',
        b'"tool_calls":[{"function":null,"name":"x"}]',
        b'"function_call":null,"arguments":"x"',
        b'"function_call":{"name":""},"arguments":"x"',
    ],
)
def test_begun_takes_no_name_beside_a_call_for_a_call(fields):
    assert not chat.begun(b'data: {"choices":[{"delta":{%s}}]}\n\n' % fields)


@pytest.mark.parametrize(
    "fields",
    [
        b'"tool_calls" : [ { "index": 0, "id": "c", "type": "function", "function" : { "name" : "x" } } ]',
        b'"tool_calls":[{"function":{"arguments":"{\\"a\\":1}"},"id":"c"}]',
        b'"tool_calls":[{"function":{"arguments":"","name":"x"}}]',
        b'"function_call": {"arguments": "{"}',
    ],
)
def test_begun_knows_calls(fields):
    assert chat.begun(b'data: {"choices":[{"delta":{%s}}]}\n\n' % fields)


@pytest.mark.parametrize(
    "piece",
    [b'"tool_calls":', b'"tool_calls":[{', b'"tool_calls":[{"function":{', b'"function_call":{"name"', b'"function":'],
)  # fmt: skip
def test_begun_looks_at_no_byte_often(piece):
    """A megabyte of what may begin a call took minutes when every beginning was followed to the end."""
    assert not chat.begun(piece * ((1 << 20) // len(piece)))


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


def piece(index, content=None, finish_reason=None, **more):
    delta = {} if content is None else {"content": content}
    return {"choices": [{"index": index, "delta": delta, "finish_reason": finish_reason}], **more}


def test_choices_are_kept_apart():
    both = {"choices": [{"delta": {"content": "a"}}, {"delta": {"content": "b"}, "finish_reason": "stop"}]}
    reply = fold(both, piece(1, "c"), piece(0, "d", "length"))
    assert (reply.output, reply.choice, reply.choices) == ([0, 0, 1, 2], [0, 1, 1, 0], 2)
    assert (reply.text, reply.finish_reason) == (["a", "d", "b", "c"], "length")


def test_a_second_choice_that_comes_late_is_told_from_the_first():
    reply = fold(piece(0, "a"), piece(0, "b"), piece(3, "c"), piece(0, "d"))
    assert (reply.output, reply.choice, reply.text) == ([0, 1, 2, 3], [0, 0, 3, 0], ["a", "b", "d", "c"])


def test_one_choice_needs_no_numbers():
    reply = fold(piece(0), piece(0, "a"), piece(None, "b"))
    assert (reply.output, reply.choice, reply.choices) == ([1, 2], None, 1)
    assert fold(piece(0), piece(0, None, "stop")).choices == 0


def test_the_only_choice_may_have_any_number():
    reply = fold(piece(5, "a"), piece(5, "b", "stop"))
    assert (reply.choice, reply.choices, reply.finish_reason, reply.text) == ([5, 5], 1, "stop", ["a", "b"])


@pytest.mark.parametrize(
    ("last", "reason"), [([], None), ([piece(1, None, "stop")], "length"), ([piece(2, "x")], None)]
)
def test_several_choices_have_a_reason_when_each_of_them_has(last, reason):
    assert fold(piece(1, "a"), piece(0, "b"), piece(0, None, "length"), *last).finish_reason == reason


def test_a_choice_that_was_only_announced_has_to_end_as_well():
    assert fold(piece(0), piece(1, "a", "stop")).finish_reason is None


def test_a_choice_that_failed_makes_the_answer_an_error():
    reply = fold(piece(1, "a", "abort"), piece(0, "b", "stop"))
    assert reply.error == "the server finished with 'abort'"


def test_the_first_answer_is_that_of_any_choice():
    reply = fold({"choices": [{"index": 0, "delta": {"reasoning": "h"}}]}, piece(1, "a"), piece(0, "b"))
    assert reply.first_answer == 1
    assert fold(piece(0, "a"), piece(1, "b")).first_answer == 0


def test_running_counts_of_two_choices_are_added_up():
    usage = [{"usage": {"completion_tokens": n}} for n in (2, 1, 3)]
    events = [piece(number, "x", **counts) for number, counts in zip((0, 1, 0), usage, strict=True)]
    assert fold(*events, {"choices": [], "usage": {"completion_tokens": 4}}).tokens_after == [2, 3, 4]


def test_more_choices_without_a_number_than_numbers_there_are():
    event = {"choices": [{"delta": {"content": "x"}}] * 40_000}
    assert max(fold(event).choice) == 32_767


def test_the_choices_of_a_body():
    bodies = [{"message": {"content": "a"}, "finish_reason": "stop"}, {"message": {"content": ""}}]
    reply = chat.whole(msgspec.convert({"choices": bodies}, chat.Event))
    assert (reply.choices, reply.choice, reply.output, reply.ended) == (1, None, [], True)


def test_text_and_reasoning_in_one_event_are_one_output():
    reply = fold(delta(content="a", reasoning="b"), delta(refusal="c", reasoning="d"))
    assert (reply.output, reply.text, reply.reasoning, reply.first_answer) == (
        [0, 1],
        ["a", "c"],
        ["b", "d"],
        0,
    )


def test_an_empty_usage_takes_nothing_back():
    reply = fold(delta(content="a", usage={"completion_tokens": 1}), delta(usage={}), delta(usage={"x": 1}))
    assert reply.usage == Usage(completion_tokens=1)


@pytest.mark.parametrize("usage", [5, "x", [], [1], True, {"completion_tokens": "many"}])
def test_a_usage_that_is_none_harms_nothing(usage):
    reply = fold(delta(content="a", usage=usage), delta(finish_reason="stop"))
    assert (reply.text, reply.output, reply.usage, reply.finish_reason) == (["a"], [0], None, "stop")


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


@pytest.mark.parametrize(
    ("turns", "prompt"),
    [
        ([Turn(text="a b"), Turn(text="c")], "a b\nc"),
        ([Turn(token_ids=(1, 2)), Turn(token_ids=(3,))], [1, 2, 3]),
    ],
)
def test_the_turns_of_a_completion_are_one_prompt(turns, prompt):
    assert completions.body(turns, Ask(model="m"))["prompt"] == prompt
