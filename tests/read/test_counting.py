from __future__ import annotations

import pytest

from loadstone import tokens
from loadstone.errors import UsageError
from loadstone.read import counting
from loadstone.read.counting import Counter, checked


class Letters:
    """A token a letter; keeps the batches that it was asked for."""

    def __init__(self):
        self.batches = []

    def count_many(self, texts):
        self.batches.append(list(texts))
        return list(map(len, texts))


@pytest.fixture
def letters(monkeypatch):
    letters = Letters()
    monkeypatch.setattr(tokens, "load", lambda name: letters)
    return letters


def test_each_text_has_its_count(letters):
    assert Counter("any")(["abc", "", "de"]) == [3, 0, 2]


def test_a_long_text_is_counted_in_pieces_and_batches(letters, monkeypatch):
    monkeypatch.setattr(counting, "PIECE_CHARS", 4)
    monkeypatch.setattr(counting, "BATCH_CHARS", 8)
    assert Counter("any")(["abcdefghij", "klm"]) == [10, 3]
    assert letters.batches == [["abcd", "efgh"], ["ij", "klm"]]


def test_a_text_that_no_answer_has_is_not_counted(letters, monkeypatch):
    monkeypatch.setattr(counting, "MOST_CHARS", 4)
    assert Counter("any")(["abc", "abcde", "abcd"]) == [3, None, 4]
    assert Counter("any")(["abcde"]) == [None]


def test_nothing_is_loaded_for_nothing(monkeypatch):
    def load(name):
        raise AssertionError(name)

    monkeypatch.setattr(tokens, "load", load)
    assert Counter("any")([]) == []


def test_without_a_vocabulary_nothing_is_counted():
    assert Counter("none")(["abc"]) == [None]


def test_a_vocabulary_that_is_not_there_any_more_costs_the_counts_alone(monkeypatch):
    asked = []

    def load(name):
        asked.append(name)
        raise UsageError("gone")

    monkeypatch.setattr(tokens, "load", load)
    counter = Counter("any")
    assert [counter(["a"]), counter(["b", "c"])] == [[None], [None, None]]
    assert asked == ["any"]


@pytest.mark.parametrize(
    ("which", "requests"),
    [("none", []), ("sample", [*range(20), 50, 100, 150]), ("all", list(range(160)))],
)
def test_whose_answers_are_checked(which, requests):
    assert [request for request in range(160) if checked(request, which)] == requests
