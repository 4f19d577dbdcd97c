"""`/v1/completions`: streams and bodies."""

from __future__ import annotations

from typing import Any

import pytest
from tests.sim.api.told import COMPLETIONS, asked, events, refused, whole

FACTS = {"id": "cmpl-0000000000000001", "object": "text_completion", "created": 7, "model": "m"}


def test_a_stream_is_texts() -> None:
    found = asked(COMPLETIONS, prompt=[1, 2, 3], stream=True, max_tokens=2)
    choice = {"index": 0, "logprobs": None, "finish_reason": None}
    assert events(found) == [
        {**FACTS, "choices": [{**choice, "text": " points"}]},
        {**FACTS, "choices": [{**choice, "text": " to"}]},
        {**FACTS, "choices": [{**choice, "text": "", "finish_reason": "length"}]},
    ]


def test_a_whole_answer() -> None:
    assert whole(asked(COMPLETIONS, prompt=[1, 2, 3], max_tokens=2), cached=0) == {
        **FACTS,
        "choices": [{"index": 0, "text": " points to", "logprobs": None, "finish_reason": "length"}],
        "usage": {
            "prompt_tokens": 3, "total_tokens": 5, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 0},
        },
    }  # fmt: skip


def test_log_probabilities_have_the_older_shape() -> None:
    found = asked(COMPLETIONS, prompt=[1, 2, 3], stream=True, max_tokens=2, logprobs=1)
    body = whole(found)["choices"][0]["logprobs"]
    assert body == {
        "text_offset": [0, 7],
        "token_logprobs": [-0.25, -0.3125],
        "tokens": [" points", " to"],
        "top_logprobs": [{" points": -0.25}, {" to": -0.3125}],
    }
    parts = [e["choices"][0]["logprobs"] for e in events(found)[:-1]]
    assert {name: [one for part in parts for one in part[name]] for name in body} == body


@pytest.mark.parametrize(
    ("prompt", "tokens"),
    [("one two three", 3), (["one two"], 2), ([5, 6, 7, 8], 4), ([[5, 6]], 2), ("", 0), ([[]], 0)],
)
def test_a_prompt_is_counted_in_words_or_ids(prompt: Any, tokens: int) -> None:
    assert asked(COMPLETIONS, prompt=prompt).prompt_tokens == tokens


@pytest.mark.parametrize("prompt", [[], [1, "a"], ["a", [1], 2]])
def test_prompts_that_are_neither_texts_nor_ids_are_refused(prompt: Any) -> None:
    message = "prompt has to be a text, a list of token ids, or a list of texts or of lists of token ids"
    assert refused(COMPLETIONS, prompt=prompt)["message"] == message


def test_several_prompts_have_each_their_choices_as_if_asked_alone() -> None:
    prompts = ["one two", [5, 6, 7], "one two"]
    found = asked(COMPLETIONS, prompt=prompts, n=2, max_tokens=9)
    alone = [asked(COMPLETIONS, prompt=prompt, n=2, max_tokens=9) for prompt in prompts]
    assert found.choices == tuple(choice for one in alone for choice in one.choices)
    assert (found.prompt_tokens, found.limit_tokens) == (2 + 3 + 2, 9)
    told = whole(found)
    assert [choice["index"] for choice in told["choices"]] == [0, 1, 2, 3, 4, 5]
    assert told["usage"]["completion_tokens"] == sum(choice.output_tokens for choice in found.choices)


def test_prompts_have_a_bound_with_all_their_choices() -> None:
    assert len(asked(COMPLETIONS, prompt=["a"] * 64, n=2).choices) == 128
    assert "more than 128" in refused(COMPLETIONS, prompt=["a"] * 65, n=2)["message"]


def test_log_probabilities_are_bounded_over_all_prompts() -> None:
    call = {"max_tokens": 50_000, "ignore_eos": True, "logprobs": 1}
    assert asked(COMPLETIONS, prompt=["a", "b"], **call)
    assert "log probabilities" in refused(COMPLETIONS, prompt=["a", "b", "c"], **call)["message"]
