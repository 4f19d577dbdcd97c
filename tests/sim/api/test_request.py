"""What requests for text have in common: limits, lengths, choices, models, block keys."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.sim.api.told import CHAT, COMPLETIONS, HELLO, OPTIONS, RESPONSES, asked, refused, whole

from loadstone.sim.api.asked import Choice
from loadstone.sim.keys import of_prompt
from loadstone.sim.options import SimOptions
from loadstone.sim.words import SEPARATOR, bare


def test_the_limit_is_max_completion_tokens_then_max_tokens_then_the_default() -> None:
    assert asked(max_completion_tokens=3, max_tokens=5).output_tokens == 3
    assert asked(max_tokens=5).output_tokens == 5
    assert asked().output_tokens == OPTIONS.default_max_tokens
    assert asked(RESPONSES, max_output_tokens=4).output_tokens == 4


@pytest.mark.parametrize("path", [CHAT, COMPLETIONS, RESPONSES])
def test_ignore_eos_goes_on_to_the_limit(path: str) -> None:
    limit = {"max_output_tokens" if path == RESPONSES else "max_tokens": 50}
    found = asked(path, **limit)
    assert (found.output_tokens, found.choices[0].finish, found.end) == (50, "length", "length")


def test_an_answer_ends_by_itself_below_the_limit_and_the_same_way_again() -> None:
    found = asked(max_tokens=50, ignore_eos=False)
    assert 1 <= found.output_tokens < 50
    assert (found.choices[0].finish, found.end) == ("stop", "stop")
    assert asked(max_tokens=50, ignore_eos=False) == found


def test_min_tokens_is_a_floor_and_at_the_limit_the_length() -> None:
    assert 40 <= asked(max_tokens=50, min_tokens=40, ignore_eos=False).output_tokens < 50
    found = asked(max_tokens=50, min_tokens=50, ignore_eos=False)
    assert (found.output_tokens, found.choices[0].finish) == (50, "length")


def test_lengths_are_drawn_as_the_option_says() -> None:
    always = SimOptions(model="m", output_tokens="7")
    assert asked(CHAT, always, ignore_eos=False).choices[0][1:4] == (7, 35, "stop")
    assert asked(CHAT, always, ignore_eos=False, max_tokens=5).choices[0].finish == "length"
    assert asked(CHAT, always, max_tokens=9).output_tokens == 9


def test_the_seed_of_the_request_and_of_the_server_change_the_answer() -> None:
    by_request = {asked(ignore_eos=False, seed=seed).choices[0][1:] for seed in range(-5, 5)}
    servers = [SimOptions(model="m", seed=seed) for seed in range(10)]
    by_server = {asked(CHAT, server, ignore_eos=False).choices[0][1:] for server in servers}
    assert len(by_request) > 5
    assert len(by_server) > 5


def test_choices_have_lengths_and_beginnings_of_their_own() -> None:
    found = asked(n=8, ignore_eos=False, max_tokens=1000)
    assert len({choice.output_tokens for choice in found.choices}) > 4
    assert len({choice.start_word for choice in found.choices}) > 4
    assert found.choices[0] == asked(ignore_eos=False, max_tokens=1000).choices[0]
    assert found.prompt_tokens == 6


def test_the_first_model_answers_when_none_is_named() -> None:
    several = SimOptions(model="m, n")
    assert [asked(CHAT, several, model=name).model for name in (None, "m", "n")] == ["m", "m", "n"]
    assert refused(CHAT, several, model="m, n")["message"] == "The model `m, n` does not exist."


def test_reasoning_is_for_chat_and_responses_and_no_longer_than_the_answer() -> None:
    for reasoning, thoughts in ((2, 2), ("all", 5), (9, 5)):
        options = SimOptions(model="m", reasoning=reasoning)
        assert asked(CHAT, options, max_tokens=5).choices[0].reasoning_tokens == thoughts
        assert asked(RESPONSES, options, max_output_tokens=5).choices[0].reasoning_tokens == thoughts
        assert asked(COMPLETIONS, options, max_tokens=5).choices[0].reasoning_tokens == 0


def test_stop_strings_end_an_answer_also_under_ignore_eos() -> None:
    text = whole(asked(max_tokens=40))["choices"][0]["message"]["content"]
    word = text.split()[5]
    found = asked(max_tokens=40, stop=f" {word}")
    assert (found.choices[0].finish, found.choices[0].stop) == ("stop", f" {word}")
    assert whole(found)["choices"][0]["message"]["content"] == text[: text.index(f" {word}")]
    assert asked(max_tokens=40, stop="never").choices == asked(max_tokens=40).choices


def test_stop_strings_are_looked_for_behind_the_reasoning() -> None:
    options = SimOptions(model="m", reasoning=5)
    found = asked(CHAT, options, max_tokens=40, stop=" ", min_tokens=3)
    assert found.choices[0].output_tokens == 6
    found = asked(CHAT, options, max_tokens=40, stop=" ", min_tokens=8)
    assert found.choices[0].output_tokens == 9


def test_a_fault_spoils_a_short_answer_that_ends_by_itself() -> None:
    options = SimOptions(model="m", reasoning=3)
    found = asked(CHAT, options, n=3, stop="zz", logprobs=True, max_tokens=9, stream=True)
    plain = found.plain(5)
    first = found.choices[0]
    assert plain.choices == (Choice(first.prompt, 5, first.start_word, draw=first.draw),)
    assert (plain.stops, plain.logprobs, plain.usage_in_chunks, plain.stream) == ((), None, False, True)
    assert (plain.output_tokens, plain.start_word, found.plain(50).output_tokens) == (5, first.start_word, 9)


# ---- block keys ----


def keys(*messages: dict[str, Any], options: SimOptions = OPTIONS, **call: Any) -> list[list[int]]:
    return list(map(list, asked(CHAT, options, messages=[*messages], **call).keys()))


def test_keys_go_over_the_prompt_and_each_answer() -> None:
    options = SimOptions(model="m", block_size=4)
    found = asked(CHAT, options, n=2, max_tokens=10)
    prompt = ["hello", "there", *[SEPARATOR] * 4]
    for own, choice in zip(found.keys(), found.choices, strict=True):
        assert list(own) == of_prompt(prompt + bare(choice.start_word, 10), 4)
    assert found.keys()[0][0] == found.keys()[1][0]


def test_without_a_prefix_cache_there_are_none() -> None:
    assert keys(HELLO, options=SimOptions(model="m", enable_prefix_caching=False), n=2) == [[], []]


@settings(max_examples=50)
@given(
    st.lists(st.text("ab ", max_size=30), min_size=1, max_size=3),
    st.text("ab ", max_size=30),
    st.integers(1, 60),
)
def test_the_next_turn_begins_with_this_one_and_its_answer(texts: list[str], more: str, tokens: int) -> None:
    options = SimOptions(model="m", block_size=4)
    messages = [{"role": "user", "content": text} for text in texts]
    found = asked(CHAT, options, messages=messages, max_tokens=tokens)
    said = whole(found)["choices"][0]["message"]
    now = list(found.keys()[0])
    follows = keys(*messages, said, {"role": "user", "content": more}, options=options, max_tokens=1)[0]
    assert follows[: len(now)] == now
    assert len(now) == (found.prompt_tokens + tokens) // 4


def test_log_probabilities_in_one_piece_have_a_bound() -> None:
    wishes = {"logprobs": True, "top_logprobs": 20}
    assert len(asked(CHAT, n=2, max_tokens=6_241, **wishes).choices) == 2
    assert refused(CHAT, n=2, max_tokens=6_242, **wishes)["message"] == (
        "262164 log probabilities in one piece are more than 262144; set stream, or ask for fewer"
    )
    assert asked(CHAT, n=2, max_tokens=6_242, stream=True, **wishes).stream
    assert refused(COMPLETIONS, max_tokens=200_000, logprobs=1)["param"] == "logprobs"
