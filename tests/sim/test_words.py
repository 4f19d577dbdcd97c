"""The passage: its words, its texts and their lengths, from any word on and any number of rounds."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from loadstone.sim.words import BARE, PASSAGE, WORDS, bare, length, passage

starts = st.integers(0, 3 * len(WORDS))
counts = st.integers(0, 4 * len(WORDS))


def test_the_passage_begins_again_at_its_end() -> None:
    assert passage(0, len(WORDS)) == f" {PASSAGE}"
    assert passage(len(WORDS) - 1, 3) == " sea a stone"
    assert bare(len(WORDS) - 1, 3) == ["sea", "a", "stone"]


@given(starts, counts)
def test_a_text_is_its_words_and_as_long_as_it_is(start: int, tokens: int) -> None:
    text = passage(start, tokens)
    assert text.split() == bare(start, tokens) == [BARE[(start + i) % len(BARE)] for i in range(tokens)]
    assert length(start, tokens) == len(text)
