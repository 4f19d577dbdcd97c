"""Stop strings: where they end a text, and that nothing of one is shown too early."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadstone.sim.api import stops as module
from loadstone.sim.api.stops import Cut, cut, held, shown
from loadstone.sim.words import WORDS, length, passage

starts = st.integers(0, len(WORDS) - 1)
stop_texts = st.lists(
    st.text(" aehnorst", min_size=1, max_size=4)
    | st.builds(lambda at, size: (passage(0, len(WORDS)) * 2)[at : at + size], st.integers(0, 300), st.integers(1, 20)),
    min_size=1,
    max_size=3,
)  # fmt: skip


def test_a_text_ends_before_the_stop_string_that_is_complete_first() -> None:
    assert passage(0, 4) == " a stone that points"
    assert cut(0, 50, [" that"]) == Cut(3, 8, " that")
    assert cut(0, 50, ["tone th", "on"]) == Cut(2, 5, "on")
    assert cut(0, 50, [" a"]) == Cut(1, 0, " a")
    assert cut(0, 2, [" that"]) is None
    assert cut(0, 10**6, ["lodestone"]) is None
    assert cut(0, 10**6, ["sea a stone"]) == Cut(len(WORDS) + 2, length(0, len(WORDS)) - 3, "sea a stone")


def test_what_is_complete_among_the_fewest_tokens_does_not_count() -> None:
    assert cut(0, 50, [" that"], fewest=2) == Cut(3, 8, " that")
    found = cut(0, 200, [" that"], fewest=3)
    assert found is not None
    assert found.tokens > 3
    assert passage(0, 200)[found.chars :].startswith(" that")


def test_the_beginning_of_a_stop_string_is_held_back() -> None:
    assert held("a sto", ["stone"]) == 3
    assert held("a sto", ["o", "tone", "to b"]) == 2
    assert held("", ["stone"]) == held("abc", ["x"]) == 0


@given(starts, st.integers(1, 200), stop_texts, st.integers(0, 30))
def test_the_first_stop_string_by_trying_them_token_by_token(
    start: int, tokens: int, stops: list[str], fewest: int
) -> None:
    expected = None
    least = length(start, min(fewest, tokens))
    for count in range(1, tokens + 1):
        text = passage(start, count)
        ends = [
            (at + len(stop), number, at)
            for number, stop in enumerate(stops)
            for at in range(len(text))
            if text.startswith(stop, at) and at + len(stop) > least
        ]
        if ends:
            _, number, at = min(ends)
            expected = Cut(count, at, stops[number])
            break
    assert cut(start, tokens, stops, fewest) == expected


@given(starts, st.integers(1, 80), stop_texts)
def test_what_is_shown_stays_and_none_of_it_is_cut_off(start: int, tokens: int, stops: list[str]) -> None:
    found = cut(start, tokens, stops)
    last = found.tokens - 1 if found else tokens
    counts = [shown(start, count, tuple(stops)) for count in range(last + 1)]
    assert counts == sorted(counts)
    assert counts[-1] <= (found.chars if found else length(start, tokens))


def test_neither_looks_further_than_a_round_and_the_longest(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    def watched(start: int, tokens: int) -> str:
        seen.append(tokens)
        return passage(start, tokens)

    monkeypatch.setattr(module, "passage", watched)
    found = cut(5, 10**6, ["sea a stone", "x" * 50], fewest=900_000)
    assert found is not None
    assert found.tokens > 900_000
    for tokens in range(900_000, 901_000):
        shown(5, tokens, ("sea a stone", "watched"))
    assert len(seen) <= 1 + len(WORDS)  # what is held back depends on the place in the round
    assert max(seen) <= len(WORDS) + 2 * 50


def test_far_from_the_beginning_a_text_ends_as_near_to_it() -> None:
    near, far = (cut(7, 10**6, ["sea a stone", " it"], fewest) for fewest in (300, 300 + 100 * len(WORDS)))
    assert near is not None
    assert far == Cut(near.tokens + 100 * len(WORDS), near.chars + 100 * length(0, len(WORDS)), near.stop)
