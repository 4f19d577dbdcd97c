"""Prompts of exactly N tokens by construction: N words, each one token, joined by single spaces.

One rule: prompt k depends on (words, seed, k, N) only. Nothing is encoded, decoded or repaired, and
no prompt needs the ones before it. Knows no tokenizer; whether the words keep their promise is
tried when their table is made (`find`).

The first two words spell the prompt's index, so that prompts differ, and differ from the start: a
prefix cache finds nothing to reuse. The other words are drawn as language draws them, a few often and
most seldom.
"""

from __future__ import annotations

import math
from functools import cached_property
from itertools import accumulate
from struct import unpack

from loadstone.dist import draw
from loadstone.errors import UsageError
from loadstone.tokens.words import Words

SLOTS = 1 << 16
"""Two random bytes choose a word."""
ZIPF_SHIFT = 2.7
"""Word r (from 1) has weight 1 / (r + 2.7): the law of Zipf as Mandelbrot fitted it to English (1953)."""


def zipf_slots(n_words: int) -> list[int]:
    """`SLOTS` word numbers, each as often as its share; those of the rarest words may be missing."""
    edges = list(accumulate(1 / (rank + ZIPF_SHIFT) for rank in range(1, n_words + 1)))
    slots: list[int] = []
    for word, edge in enumerate(edges):
        slots.extend([word] * (round(edge / edges[-1] * SLOTS) - len(slots)))
    return slots


def _stride(n: int, start: int) -> int:
    """A number coprime to `n`, so that its multiples visit every position modulo `n` once."""
    stride = 1 + start % n
    while math.gcd(stride, n) != 1:
        stride += 1
    return stride


class Prompts:
    """The prompts of one seed, by index."""

    def __init__(self, words: Words, seed: int) -> None:
        self._words = words
        self._seed = seed
        self._firsts, self._seconds = len(words.first), len(words.rest)
        self._slots = zipf_slots(self._seconds)
        self._table = [words.rest[slot] for slot in self._slots]
        # Index -1 of the stream is no prompt's; it shuffles the spelling of the indices.
        starts = unpack("<4Q", draw(seed, -1, 32))
        self._first_stride, self._first_shift = _stride(self._firsts, starts[0]), starts[1]
        self._second_stride, self._second_shift = _stride(self._seconds, starts[2]), starts[3]

    def capacity(self, n_tokens: int) -> int:
        """How many prompts of this length, from any index on, are sure to differ.

        A single word can spell only so many indices; of two words on it is their product. Longer
        prompts differ beyond it too, by chance, though no longer within their first two words.
        """
        return self._firsts if n_tokens == 1 else self._firsts * self._seconds

    def text(self, index: int, n_tokens: int) -> str:
        """Prompt `index` with `n_tokens` tokens, at least 1."""
        first, second = self._spell(index)
        if n_tokens == 1:
            return self._words.first[first]
        chosen = map(self._table.__getitem__, self._drawn(index, n_tokens))
        return " ".join((self._words.first[first], self._words.rest[second], *chosen))

    def ids(self, index: int, n_tokens: int) -> tuple[int, ...]:
        """The same prompt as token ids, without any special token.

        Raises `UsageError` when the words have no ids.
        """
        if not self._words.rest_ids:
            raise UsageError(
                "--prompt-token-ids needs a tokenizer that knows the ids of its words: "
                f"{self._words.flaw or 'this one does not.'} Use --tokenizer builtin or a tokenizer.json."
            )
        first, second = self._spell(index)
        if n_tokens == 1:
            return (self._words.first_ids[first],)
        chosen = map(self._id_table.__getitem__, self._drawn(index, n_tokens))
        return (self._words.first_ids[first], self._words.rest_ids[second], *chosen)

    @cached_property
    def _id_table(self) -> list[int]:
        return [self._words.rest_ids[slot] for slot in self._slots]

    def _spell(self, index: int) -> tuple[int, int]:
        """The numbers of the first and the second word: one to one with `index` below the capacity.

        The first word returns only after all others have begun a prompt, then with another second one.
        """
        lap, place = divmod(index, self._firsts)
        first = (place * self._first_stride + self._first_shift) % self._firsts
        second = ((lap + place) * self._second_stride + self._second_shift) % self._seconds
        return first, second

    def _drawn(self, index: int, n_tokens: int) -> tuple[int, ...]:
        """Slots of the third word and those after it."""
        n_words = n_tokens - 2
        return unpack(f"<{n_words}H", draw(self._seed, index, 2 * n_words))
