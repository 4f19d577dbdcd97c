"""What the engine says: a passage of plain English words, repeated; every word with its space is one token."""

from __future__ import annotations

PASSAGE = (
    "a stone that points to the north was once the only guide a ship had when there was no sun and no star "
    "to be seen so men hung it on a thread and let it turn and it came to rest on the same line each time "
    "they did not know why it did so but they could trust it and that was enough to cross the sea"
)
WORDS = tuple(f" {word}" for word in PASSAGE.split())
WORDS_BYTES = tuple(word.encode() for word in WORDS)


def passage(start: int, tokens: int) -> str:
    """The text of `tokens` tokens from the word `start` on, as one string."""
    return "".join(WORDS[(start + i) % len(WORDS)] for i in range(tokens))
