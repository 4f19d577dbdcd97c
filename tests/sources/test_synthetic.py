from __future__ import annotations

from itertools import islice

import pytest

from loadstone import registry
from loadstone.config import InputConfig
from loadstone.errors import UsageError
from loadstone.plan.turn import Conversation, Turn
from loadstone.sources import Source, synthetic
from loadstone.tokens.words import COMMON, Words, common

WORDS = common("")
WITH_IDS = Words(first=COMMON, rest=COMMON, first_ids=tuple(range(256)), rest_ids=tuple(range(256)))


def taken(n: int, config: InputConfig, seed: int = 42, **rest: int) -> list[Conversation]:
    return list(islice(synthetic.conversations(config, WORDS, seed, **rest), n))


def turns(n: int, config: InputConfig, **rest: int) -> list[Turn]:
    return [turn for conversation in taken(n, config, **rest) for turn in conversation.turns]


def test_it_is_the_source_of_its_name() -> None:
    source: Source = synthetic
    assert registry.load("sources", "synthetic") is source


def test_each_conversation_is_one_turn_and_bears_its_number() -> None:
    conversations = taken(5, InputConfig())
    assert [conversation.id for conversation in conversations] == [0, 1, 2, 3, 4]
    assert [len(conversation.turns) for conversation in conversations] == [1] * 5


def test_lengths_are_those_asked_for() -> None:
    for turn in turns(20, InputConfig(isl_mean=128, osl_mean=64)):
        assert turn.text is not None
        assert (len(turn.text.split()), turn.isl_tokens, turn.max_tokens) == (128, 128, 64)


def test_without_an_output_length_the_server_decides() -> None:
    assert {turn.max_tokens for turn in turns(20, InputConfig(osl_stddev=5))} == {None}


def test_any_part_can_be_had_without_those_before_it() -> None:
    config = InputConfig(isl_mean=100, isl_stddev=30, osl_mean=50, osl_stddev=9)
    assert taken(10, config, start=90) == taken(100, config)[90:]


def test_the_seed_decides_everything() -> None:
    config = InputConfig(isl_mean=100, isl_stddev=30)
    assert taken(30, config, seed=1) == taken(30, config, seed=1)
    assert taken(30, config, seed=1) != taken(30, config, seed=2)


def test_other_output_lengths_leave_the_prompts_as_they_were() -> None:
    config = InputConfig(isl_mean=100, isl_stddev=30)
    with_osl = InputConfig(isl_mean=100, isl_stddev=30, osl_mean=50, osl_stddev=9)
    assert [turn.text for turn in turns(30, config)] == [turn.text for turn in turns(30, with_osl)]


def test_prompts_are_unique_and_start_differently() -> None:
    texts = [turn.text or "" for turn in turns(256, InputConfig(isl_mean=16))]
    assert len(set(texts)) == 256
    assert len({text.split()[0] for text in texts}) == 256


def test_entries_are_reused_in_turn_with_their_lengths() -> None:
    config = InputConfig(isl_mean=100, isl_stddev=30, osl_mean=50, osl_stddev=9, entries=4)
    asked = turns(12, config)
    assert asked == asked[:4] * 3
    assert len({turn.text for turn in asked}) == 4
    assert [conversation.id for conversation in taken(12, config)] == list(range(12))


def test_the_template_is_taken_off_only_when_lengths_include_it() -> None:
    included = InputConfig(isl_mean=128, isl_includes_template=True)
    assert {turn.isl_tokens for turn in turns(9, included, template_tokens=11)} == {117}
    assert {turn.isl_tokens for turn in turns(9, InputConfig(isl_mean=128), template_tokens=11)} == {128}


def test_a_template_longer_than_the_prompt_leaves_one_token() -> None:
    included = InputConfig(isl_mean=8, isl_includes_template=True)
    (turn,) = turns(1, included, template_tokens=50)
    assert turn.isl_tokens == 1
    assert turn.text in COMMON


def test_prompts_as_token_ids() -> None:
    config = InputConfig(isl_mean=12, token_ids=True)
    (conversation,) = islice(synthetic.conversations(config, WITH_IDS, 42), 1)
    (turn,) = conversation.turns
    (as_text,) = turns(1, InputConfig(isl_mean=12))
    assert turn.text is None
    assert as_text.text is not None
    assert turn.token_ids == tuple(COMMON.index(word) for word in as_text.text.split())


def test_token_ids_without_a_vocabulary_are_refused_at_once() -> None:
    with pytest.raises(UsageError, match="--prompt-token-ids needs a tokenizer"):
        synthetic.conversations(InputConfig(token_ids=True), WORDS, 42)
