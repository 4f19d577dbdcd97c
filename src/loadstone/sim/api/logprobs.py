"""Log probabilities of tokens: made up, the same ones each time, and in the two shapes of the API.

The passage's word w has log p = -(1 + w mod 8) / 16; the next words after it are its alternatives, each half a nat below
the one before.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from loadstone.sim.words import WORDS

MOST_ALTERNATIVES = 20
"""vLLM's `--max-logprobs`."""


def logprob(word: int) -> float:
    """The log probability of a word where the engine says it."""
    return -(1 + word % len(WORDS) % 8) / 16


def ranked(word: int, text: str, alternatives: int) -> list[tuple[str, float]]:
    """The likeliest tokens, the one that was said first, and their log probabilities."""
    first = logprob(word)
    others = dict.fromkeys(WORDS[(word + i) % len(WORDS)] for i in range(1, len(WORDS)))
    others.pop(text, None)
    return [
        (text, first),
        *((other, first - (i + 1) / 2) for i, other in zip(range(alternatives - 1), others, strict=False)),
    ]


def chat(words: Sequence[tuple[int, str]], alternatives: int) -> dict[str, Any]:
    """The shape of chat; `words` are (place in the passage, text) of each token."""
    content = []
    for word, text in words:
        top = [_token(*pair) for pair in ranked(word, text, max(alternatives, 1))]
        content.append({**top[0], "top_logprobs": top[:alternatives]})
    return {"content": content}


def _token(text: str, value: float) -> dict[str, Any]:
    return {"token": text, "logprob": value, "bytes": list(text.encode())}


def legacy(words: Sequence[tuple[int, str]], alternatives: int, offset: int = 0) -> dict[str, Any]:
    """The shape of completions; `offset`: where the first token stands in the text."""
    offsets = []
    for _, text in words:
        offsets.append(offset)
        offset += len(text)
    return {
        "text_offset": offsets,
        "token_logprobs": [logprob(word) for word, _ in words],
        "tokens": [text for _, text in words],
        "top_logprobs": [dict(ranked(word, text, max(alternatives, 1))) for word, text in words],
    }
