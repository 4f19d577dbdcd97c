"""The names of KV cache blocks: one number for each full block of a prompt and the answer behind it.

One rule: the key of a block depends on all tokens up to its end, so equal beginnings have equal keys and, but for one
chance in about 2^61, only they. The same in every process. A token is a word or an id.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import overload

from loadstone.sim.vocabulary import bare_ids
from loadstone.sim.words import BARE, bare

Tokens = Sequence[str] | Sequence[int]


def of_words(words: Sequence[str]) -> int:
    """A block of words as a number: their bytes modulo 2^61 - 1. Hashes of texts are others in every process."""
    return hash(int.from_bytes(" ".join(words).encode(), "little"))


def of_ids(ids: Sequence[int]) -> int:
    """A block of ids as a number; the hash of a tuple of numbers is the same in every process."""
    return hash(tuple(ids))


@lru_cache(maxsize=4096)
def _spoken(words: bool, start: int, tokens: int) -> int:
    """A block of the passage: there are only as many as it has words."""
    return of_words(bare(start, tokens)) if words else of_ids(bare_ids(start, tokens))


def are_words(tokens: Tokens) -> bool:
    """Whether tokens are words; no tokens are."""
    return not tokens or isinstance(tokens[0], str)


def of_prompt(prompt: Tokens, block_size: int) -> list[int]:
    """The keys of the full blocks of a prompt alone: each is the hash of the key before it and of its own tokens."""
    keys: list[int] = []
    key = 0
    number = of_words if are_words(prompt) else of_ids
    for end in range(block_size, len(prompt) + 1, block_size):
        key = hash((key, number(prompt[end - block_size : end])))  # type: ignore[arg-type]  # `number` is for their kind
        keys.append(key)
    return keys


class Keys(Sequence[int]):
    """The keys of a prompt and of an answer from the passage; those of the answer are worked out when they are asked for."""

    __slots__ = ("_block_size", "_count", "_known", "_prompt", "_start_word")

    def __init__(
        self, prompt: Tokens, known: Sequence[int], start_word: int, output_tokens: int, block_size: int
    ) -> None:
        """`known` are the keys of the prompt, which several answers may share."""
        self._prompt = prompt
        self._known = list(known)
        self._start_word = start_word
        self._block_size = block_size
        self._count = (len(prompt) + output_tokens) // block_size

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[int]:
        known = self._known
        for at in range(self._count):
            if at >= len(known):
                self._extend(at)
            yield known[at]

    @overload
    def __getitem__(self, index: int) -> int: ...
    @overload
    def __getitem__(self, index: slice) -> list[int]: ...
    def __getitem__(self, index: int | slice) -> int | list[int]:
        if isinstance(index, slice):
            wanted = range(self._count)[index]
            if wanted:
                self._extend(max(wanted[0], wanted[-1]))
            return [self._known[at] for at in wanted]
        if index < 0:
            index += self._count
        if not 0 <= index < self._count:
            raise IndexError(f"block {index} of {self._count}")
        if index >= len(self._known):
            self._extend(index)
        return self._known[index]

    def _extend(self, index: int) -> None:
        """Works out the keys up to the block `index`."""
        known, size, words = self._known, self._block_size, are_words(self._prompt)
        behind = self._start_word - len(self._prompt)  # from a token of the whole to its word of the passage
        key = known[-1] if known else 0
        for at in range(len(known), index + 1):
            first = at * size
            head = self._prompt[first : first + size]
            if head:
                key = hash((key, self._mixed(head)))
            else:
                key = hash((key, _spoken(words, (first + behind) % len(BARE), size)))
            known.append(key)

    def _mixed(self, head: Tokens) -> int:
        """The block that begins with the last tokens of the prompt."""
        rest = self._block_size - len(head)
        if are_words(head):
            return of_words([*head, *bare(self._start_word, rest)])
        return of_ids([*head, *bare_ids(self._start_word, rest)])
