"""The promise: a prompt of N tokens is N tokens, with every tokenizer that can keep it."""

from __future__ import annotations

import pytest
import tokenizers
from hypothesis import given, settings
from hypothesis import strategies as st

from loadstone import tokens
from loadstone.tokens.prompts import Prompts
from loadstone.tokens.vocabulary import builtin_file

KINDS = ("builtin", "byte_level", "metaspace_bpe", "metaspace_unigram", "word_piece")

seeds = st.integers(0, 2**63 - 1)
indices = st.integers(0, 10**9)
lengths = st.integers(1, 300)


@pytest.mark.parametrize("kind", KINDS)
def test_a_prompt_has_exactly_the_tokens_asked_for(kind: str, vocabularies: dict[str, str]) -> None:
    tokenizer = tokens.load(vocabularies[kind])
    assert tokenizer.exact
    assert tokenizer.flaw is None

    @settings(max_examples=150, database=None)
    @given(seed=seeds, index=indices, n_tokens=lengths)
    def holds(seed: int, index: int, n_tokens: int) -> None:
        assert tokenizer.count(Prompts(tokenizer.words, seed).text(index, n_tokens)) == n_tokens

    holds()


@pytest.mark.parametrize("kind", KINDS)
def test_the_ids_of_a_prompt_are_those_its_text_encodes_to(kind: str, vocabularies: dict[str, str]) -> None:
    prompts = Prompts(tokens.load(vocabularies[kind]).words, seed=3)
    file = builtin_file() if kind == "builtin" else f"{vocabularies[kind]}/tokenizer.json"
    engine = tokenizers.Tokenizer.from_file(str(file))
    engine.no_truncation()
    engine.no_padding()
    for index, n_tokens in enumerate((1, 2, 3, 17, 128)):
        text = prompts.text(index, n_tokens)
        assert tuple(engine.encode(text, add_special_tokens=False).ids) == prompts.ids(index, n_tokens)


def test_many_prompts_of_the_builtin_vocabulary(vocabularies: dict[str, str]) -> None:
    tokenizer = tokens.load("builtin")
    prompts = Prompts(tokenizer.words, seed=42)
    assert tokenizer.count_many([prompts.text(i, 1 + i % 64) for i in range(2000)]) == [
        1 + i % 64 for i in range(2000)
    ]


def test_after_a_newline_a_prompt_is_as_long_as_at_the_start(line_bound: str) -> None:
    tokenizer = tokens.load(line_bound)
    prompts = Prompts(tokenizer.words, seed=1)
    before = tokenizer.count("the\n")
    assert before is not None
    for index in range(100):
        assert tokenizer.count("the\n" + prompts.text(index, 9)) == before + 9


def test_first_words_are_taken_from_those_that_may_follow_a_newline(line_bound: str) -> None:
    words = tokens.load(line_bound).words
    assert set(tokens.COMMON) <= set(words.rest)
    assert set(tokens.COMMON[:100]) <= set(words.first)
    assert {"river", "rain"} & set(words.first) == set()


def test_a_vocabulary_that_joins_words_is_found_out(space_merging: str) -> None:
    tokenizer = tokens.load(space_merging)
    assert not tokenizer.exact
    assert tokenizer.flaw is not None
    assert tokenizer.flaw.endswith(
        "of 200 trial prompts came out as other tokens than meant; the tokenizer seems to join words across spaces."
    )


def test_a_vocabulary_without_words_falls_back_to_everyday_ones(letters_only: str) -> None:
    tokenizer = tokens.load(letters_only)
    assert tokenizer.flaw == (
        "only 0 words are single tokens at the start of a text and 0 after a space, "
        "so everyday words are used, one counted as one token."
    )
    assert tokenizer.words.rest == tokens.COMMON


def test_everyday_words_are_single_tokens_of_the_builtin_vocabulary() -> None:
    tokenizer = tokens.load("builtin")
    assert set(tokenizer.count_many(tokens.COMMON) or ()) == {1}
    assert set(tokenizer.count_many(["the " + word for word in tokens.COMMON]) or ()) == {2}
