"""Log probabilities in both shapes."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from loadstone.sim.api.logprobs import chat, legacy, logprob, ranked
from loadstone.sim.words import WORDS


def test_the_shape_of_chat() -> None:
    assert chat([(0, " a")], 0) == {
        "content": [{"token": " a", "logprob": -0.0625, "bytes": [32, 97], "top_logprobs": []}]
    }
    assert chat([(1, " stone")], 2)["content"][0]["top_logprobs"] == [
        {"token": " stone", "logprob": -0.125, "bytes": [32, 115, 116, 111, 110, 101]},
        {"token": " that", "logprob": -0.625, "bytes": [32, 116, 104, 97, 116]},
    ]


def test_the_shape_of_completions() -> None:
    assert legacy([(0, " a"), (1, " stone")], 2, 5) == {
        "text_offset": [5, 7],
        "token_logprobs": [-0.0625, -0.125],
        "tokens": [" a", " stone"],
        "top_logprobs": [{" a": -0.0625, " stone": -0.5625}, {" stone": -0.125, " that": -0.625}],
    }
    assert legacy([(0, " a")], 0)["top_logprobs"] == [{" a": -0.0625}]


@given(st.integers(0, 500), st.integers(1, 20))
def test_alternatives_are_others_and_less_likely(word: int, alternatives: int) -> None:
    found = ranked(word, WORDS[word % len(WORDS)], alternatives)
    assert found[0] == (WORDS[word % len(WORDS)], logprob(word))
    assert len(dict(found)) == len(found) == alternatives
    values = [value for _, value in found]
    assert values == sorted(values, reverse=True)
    assert values[0] < 0
