"""Words as ids and back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadstone.sim import vocabulary as rooms
from loadstone.sim.vocabulary import HASHED, Vocabulary, bare_ids, word_id
from loadstone.sim.words import SEPARATOR, bare

texts = st.lists(st.text(min_size=1).filter(lambda text: text.split() == [text]))


def test_own_words_have_the_lowest_ids_and_others_a_hash() -> None:
    assert [word_id(word) for word in (SEPARATOR, "a", "stone", "that")] == [1, 2, 3, 4]
    assert word_id("lodestone") == word_id("lodestone") == 123818285128113
    assert HASHED <= word_id("lodestone") < 2**53


def test_the_passage_has_the_ids_of_its_words() -> None:
    assert bare_ids(60, 9) == [word_id(word) for word in bare(60, 9)]


@given(texts)
def test_words_come_back(words: list[str]) -> None:
    vocabulary = Vocabulary()
    assert vocabulary.words(vocabulary.ids(words)) == words


def test_what_was_never_shown_or_is_forgotten_is_a_number() -> None:
    vocabulary = Vocabulary(most=2)
    first, second, third = vocabulary.ids(["x1", "x2", "x3"])
    assert vocabulary.words([first, second, third, 2, 0]) == [f"<|{first}|>", "x2", "x3", "a", "<|0|>"]


def test_many_characters_are_forgotten_as_many_words_are() -> None:
    vocabulary = Vocabulary(most_chars=5)
    first, second, third = vocabulary.ids(["x" * 3, "y" * 2, "z" * 1])
    assert vocabulary.words([first, second, third]) == [f"<|{first}|>", "yy", "z"]
    (long,) = vocabulary.ids(["l" * 6])
    assert vocabulary.words([long, third]) == [f"<|{long}|>", f"<|{third}|>"]


class Watched(rooms.OrderedDict[int, str]):
    """Counts how often anybody goes through it."""

    rounds = 0

    def __iter__(self):
        type(self).rounds += 1
        return super().__iter__()


def test_forgetting_looks_at_the_oldest_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rooms, "OrderedDict", Watched)
    vocabulary = Vocabulary(most=10)
    vocabulary.ids(f"w{number}" for number in range(1000))
    assert (len(vocabulary._words), Watched.rounds) == (10, 0)
