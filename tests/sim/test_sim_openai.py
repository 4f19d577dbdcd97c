"""What requests ask for and how answers are spelled, without a server."""

from __future__ import annotations

import json
from http import HTTPStatus
from typing import Any

import msgspec
import pytest

from loadstone.sim.openai import Answer, ApiError, Asked, answer_tokens, chat, completions, models
from loadstone.sim.options import SimOptions

OPTIONS = SimOptions(model="m")
HELLO = {"role": "user", "content": "hello there"}


def ask(options: SimOptions = OPTIONS, **call: Any) -> Asked:
    return chat(msgspec.json.encode({"model": "m", "messages": [HELLO], "ignore_eos": True, **call}), options)


def complete(**call: Any) -> Asked:
    return completions(msgspec.json.encode({"model": "m", "prompt": "one two three", **call}), OPTIONS)


def events(asked: Asked) -> list[Any]:
    """The decoded events of a whole stream; its end mark as the string it is."""
    answer = Answer(asked, "id-1", 7, "m")
    data = answer.opening() + b"".join(map(answer.token, range(asked.output_tokens))) + answer.closing()
    *lines, rest = data.decode().split("\n\n")
    assert rest == ""
    assert lines[-1] == "data: [DONE]"
    return [json.loads(line.removeprefix("data: ")) for line in lines[:-1]]


def test_the_limit_is_max_completion_tokens_then_max_tokens_then_the_default() -> None:
    assert ask(max_completion_tokens=3, max_tokens=5).output_tokens == 3
    assert ask(max_tokens=5).output_tokens == 5
    assert ask().output_tokens == OPTIONS.default_max_tokens


def test_ignore_eos_goes_on_to_the_limit() -> None:
    asked = ask(max_tokens=50)
    assert (asked.output_tokens, asked.finish) == (50, "length")


def test_an_answer_ends_by_itself_below_the_limit_and_the_same_way_again() -> None:
    asked = ask(max_tokens=50, ignore_eos=False)
    assert 1 <= asked.output_tokens < 50
    assert asked.finish == "stop"
    assert ask(max_tokens=50, ignore_eos=False) == asked


def test_min_tokens_is_a_floor_and_at_the_limit_the_length() -> None:
    assert 40 <= ask(max_tokens=50, min_tokens=40, ignore_eos=False).output_tokens < 50
    asked = ask(max_tokens=50, min_tokens=50, ignore_eos=False)
    assert (asked.output_tokens, asked.finish) == (50, "length")


def test_natural_lengths_fill_the_whole_range() -> None:
    assert {answer_tokens(0, draw, 0, 5) for draw in range(200)} == {1, 2, 3, 4}
    assert [answer_tokens(0, draw, 0, 1) for draw in range(3)] == [1, 1, 1]
    assert answer_tokens(1, 9, 0, 10**6) != answer_tokens(2, 9, 0, 10**6)


def test_prompt_tokens_of_chat_are_words_and_template() -> None:
    parts = {"role": "user", "content": [{"type": "text", "text": "a b"}, {"type": "text", "text": "c"}]}
    assert ask().prompt_tokens == 2 + 4
    assert ask(messages=[HELLO, parts, {"role": "assistant", "content": None}]).prompt_tokens == 5 + 3 * 4


def test_prompt_tokens_of_completions_are_words_or_ids() -> None:
    assert complete().prompt_tokens == 3
    assert complete(prompt=["one two"]).prompt_tokens == 2
    assert complete(prompt=[5, 6, 7, 8]).prompt_tokens == 4
    assert complete(prompt=[[5, 6]]).prompt_tokens == 2


def test_a_chat_stream_is_role_tokens_finish_and_end_mark() -> None:
    role, first, second, finish = (e["choices"][0] for e in events(ask(stream=True, max_tokens=2)))
    assert role["delta"] == {"role": "assistant", "content": ""}
    assert list(first["delta"]) == list(second["delta"]) == ["content"]
    assert (finish["delta"], finish["finish_reason"]) == ({}, "length")
    assert role["finish_reason"] is first["finish_reason"] is None


def test_every_event_names_the_answer() -> None:
    for event in events(ask(stream=True, max_tokens=2, stream_options={"include_usage": True})):
        assert {k: event[k] for k in ("id", "object", "created", "model")} == {
            "id": "id-1", "object": "chat.completion.chunk", "created": 7, "model": "m",
        }  # fmt: skip


def test_usage_comes_in_a_last_event_of_its_own_when_asked_for() -> None:
    asked = ask(stream=True, max_tokens=2, stream_options={"include_usage": True})
    *before, last = events(asked)
    assert last["choices"] == []
    assert last["usage"] == {"prompt_tokens": 6, "completion_tokens": 2, "total_tokens": 8}
    assert all("usage" not in event for event in before)


def test_continuous_usage_counts_up() -> None:
    wanted = {"include_usage": True, "continuous_usage_stats": True}
    found = events(ask(stream=True, max_tokens=3, stream_options=wanted))
    assert [e["usage"]["completion_tokens"] for e in found if "usage" in e] == [1, 2, 3, 3]


def test_a_completion_stream_is_texts() -> None:
    asked = complete(stream=True, max_tokens=2, ignore_eos=True)
    first, second, finish = events(asked)
    assert first["object"] == "text_completion"
    assert first["choices"][0]["text"].startswith(" ")
    assert second["choices"][0]["finish_reason"] is None
    assert (finish["choices"][0]["text"], finish["choices"][0]["finish_reason"]) == ("", "length")


def test_the_whole_answer_says_what_the_stream_says() -> None:
    asked = ask(max_tokens=5, stream=True)
    streamed = "".join(e["choices"][0]["delta"].get("content", "") for e in events(asked))
    whole = json.loads(Answer(asked, "id-1", 7, "m").whole())
    assert whole["choices"][0]["message"]["content"] == streamed
    assert len(streamed.split()) == 5
    assert whole["usage"] == {"prompt_tokens": 6, "completion_tokens": 5, "total_tokens": 11}


@pytest.mark.parametrize(("reasoning", "thoughts", "words"), [(2, 2, 3), ("all", 5, 0), (9, 5, 0)])
def test_reasoning_comes_first_in_its_own_channel(reasoning: Any, thoughts: int, words: int) -> None:
    asked = ask(SimOptions(model="m", reasoning=reasoning), stream=True, max_tokens=5)
    names = [name for e in events(asked)[1:-1] for name in e["choices"][0]["delta"]]
    assert names == ["reasoning_content"] * thoughts + ["content"] * words
    usage = json.loads(Answer(asked, "i", 7, "m").whole())["usage"]
    assert usage["completion_tokens_details"] == {"reasoning_tokens": thoughts}


def test_an_awkward_model_name_is_spelled_right() -> None:
    name = 'a@"\\é'
    asked = ask(SimOptions(model=name), model=name, stream=True, max_tokens=1)
    event = json.loads(Answer(asked, "i", 7, name).token(0).removeprefix(b"data: "))
    assert event["model"] == name
    assert event["choices"][0]["delta"]["content"].isprintable()


@pytest.mark.parametrize(
    ("body", "status", "message"),
    [
        (b"{", 400, "the body is not JSON: Input data was truncated"),
        (b"\xff", 400, "the body is not JSON: JSON is malformed: invalid character (byte 0)"),
        (b"[" * 100_000, 400, "Expected `object`, got `array`"),
        (b'{"model":"m"}', 400, "Object missing required field `messages`"),
        (b'{"model":"m","messages":[]}', 400, "Expected `array` of length >= 1 - at `$.messages`"),
        (b'{"model":"x","messages":[{"role":"user"}]}', 404, "The model `x` does not exist."),
        (
            b'{"model":"m","messages":[{"role":"user"}],"max_tokens":2,"min_tokens":3}',
            400,
            "min_tokens = 3 is above max_tokens = 2",
        ),
        (b'{"model":"m","messages":[{"role":"user"}],"n":2}', 400, "Invalid enum value 2 - at `$.n`"),
        (
            b'{"model":"m","messages":[{"role":"user"}],"max_tokens":0}',
            400,
            "Expected `int` >= 1 - at `$.max_tokens`",
        ),
    ],
)
def test_wrong_requests_are_refused_with_the_reason(body: bytes, status: int, message: str) -> None:
    with pytest.raises(ApiError) as refusal:
        chat(body, OPTIONS)
    assert refusal.value.status == HTTPStatus(status)
    assert json.loads(refusal.value.body())["error"]["message"] == message


@pytest.mark.parametrize("prompt", [[], [1, "a"], ["a", "b"], [[1], [2]]])
def test_a_batch_of_prompts_is_refused(prompt: Any) -> None:
    with pytest.raises(ApiError, match="one text or one list of token ids"):
        complete(prompt=prompt)


def test_several_models_are_listed_and_answer_by_their_own_names() -> None:
    options = SimOptions(model="m, n")
    assert [model["id"] for model in json.loads(models(options, 7))["data"]] == ["m", "n"]
    assert [ask(options, model=name).model for name in ("m", "n")] == ["m", "n"]
    with pytest.raises(ApiError, match="The model `m, n` does not exist"):
        ask(options, model="m, n")


def test_models_lists_the_one() -> None:
    assert json.loads(models(OPTIONS, 7))["data"] == [
        {"id": "m", "object": "model", "created": 7, "owned_by": "loadstone"}
    ]
