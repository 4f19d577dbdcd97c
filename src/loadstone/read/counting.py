"""Counts the tokens of whole answers with the run's tokenizer, which is loaded when first needed.

One rule: nothing is guessed. Without a vocabulary, or when it cannot be read any more, there is no count.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from loadstone.errors import LoadstoneError

if TYPE_CHECKING:
    from loadstone.tokens import Tokenizer

PIECE_CHARS = 1 << 18
"""A longer text is counted in pieces, each a token off at most where it was cut: memory must not follow its length."""
BATCH_CHARS = 1 << 20
MOST_CHARS = 8 << 20
"""Counting a longer text would keep the decoder for seconds; it has no count."""
FIRST_CHECKED = 20
CHECKED_EVERY = 50


def checked(request: int, check_tokens: str) -> bool:
    """Whether the tokens of a request's answer are counted beside the server: by `output.check_tokens`."""
    if check_tokens == "sample":
        return request < FIRST_CHECKED or request % CHECKED_EVERY == 0
    return check_tokens == "all"


class Counter:
    """Counts by the tokenizer called `name`."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._tokenizer: Tokenizer | None = None
        self._failed = False

    def __call__(self, texts: Sequence[str]) -> Sequence[int | None]:
        """The tokens of each text; None for one that is too long, and for all without anything to count by."""
        counts: list[int | None] = [None] * len(texts)
        short = [index for index, text in enumerate(texts) if len(text) <= MOST_CHARS]
        if not short or self._failed:
            return counts
        try:
            found = self._count([texts[index] for index in short])
        except LoadstoneError:  # its file is gone: what was recorded can be reported all the same
            self._failed = True
            return counts
        for index, count in zip(short, found, strict=True):
            counts[index] = count
        return counts

    def _count(self, texts: Sequence[str]) -> Sequence[int | None]:
        if self._tokenizer is None:
            from loadstone import tokens  # costs time and memory; most servers count themselves

            self._tokenizer = tokens.load(self._name)
        counts = [0] * len(texts)
        for batch in _batches(texts):
            found = self._tokenizer.count_many([text for _, text in batch])
            if found is None:
                return [None] * len(texts)
            for (owner, _), count in zip(batch, found, strict=True):
                counts[owner] += count
        return counts


def _batches(texts: Sequence[str]) -> Iterator[list[tuple[int, str]]]:
    """Pieces of the texts, each with the number of its text, a bounded number of characters at a time."""
    pieces = (
        (owner, text[at : at + PIECE_CHARS])
        for owner, text in enumerate(texts)
        for at in range(0, len(text), PIECE_CHARS)
    )
    batch: list[tuple[int, str]] = []
    chars = 0
    for owner, piece in pieces:
        batch.append((owner, piece))
        chars += len(piece)
        if chars >= BATCH_CHARS:
            yield batch
            batch, chars = [], 0
    if batch:
        yield batch
