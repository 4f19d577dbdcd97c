"""What the engine says: a passage of plain English words, repeated; every word with its space is one token.

Texts are made of tokens in the same way: a word each, whatever is between them. Pure; a text is never stored.
"""

from __future__ import annotations

from itertools import accumulate, cycle, islice

PASSAGE = (
    "a stone that points to the north was once the only guide a ship had when there was no sun and no star "
    "to be seen so men hung it on a thread and let it turn and it came to rest on the same line each time "
    "they did not know why it did so but they could trust it and that was enough to cross the sea"
)
BARE = tuple(PASSAGE.split())
WORDS = tuple(f" {word}" for word in BARE)
WORDS_BYTES = tuple(word.encode() for word in WORDS)
SEPARATOR = "<|sep|>"
"""The token that a chat template puts between messages."""
MESSAGE_TOKENS = 4
"""How many of them follow each message."""

_ENDS = (0, *accumulate(map(len, WORDS)))
"""How many characters the passage has before each of its words, and in all."""


def passage(start: int, tokens: int) -> str:
    """The text of `tokens` tokens from the word `start` on, as one string."""
    begin = start % len(WORDS)
    return "".join(islice(cycle(WORDS), begin, begin + tokens))


def bare(start: int, tokens: int) -> list[str]:
    """The same as words."""
    begin = start % len(BARE)
    return list(islice(cycle(BARE), begin, begin + tokens))


def length(start: int, tokens: int) -> int:
    """The number of characters of `passage(start, tokens)`."""
    return _before(start + tokens) - _before(start)


def _before(word: int) -> int:
    rounds, rest = divmod(word, len(WORDS))
    return rounds * _ENDS[-1] + _ENDS[rest]
