"""The names of KV cache blocks: one number for each full block of a prompt and the answer behind it.

One rule: the key of a block depends on all tokens up to its end, so equal beginnings have equal keys and, but for one
chance in about 2^61, only they. The same in every process. A token is a word or an id.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import overload

Tokens = Sequence[str] | Sequence[int]
Piece = Callable[[int, int], Tokens]
"""(first token, tokens) of an answer, to be had as words or ids like its prompt."""


def chain(key: int, tokens: Tokens) -> int:
    """The key of a block behind the one of `key`.

    Numbers are hashed as a tuple, which CPython does alike in every process; texts become numbers first (their bytes
    modulo 2^61 - 1), because their own hashes are another in each.
    """
    if tokens and isinstance(tokens[0], str):
        return hash((key, int.from_bytes(" ".join(tokens).encode(errors="surrogatepass"), "little")))  # type: ignore[arg-type]
    return hash((key, *tokens))


def of_prompt(prompt: Tokens, block_size: int) -> list[int]:
    """The keys of the full blocks of a prompt alone."""
    keys, key = [], 0
    for start in range(0, len(prompt) - block_size + 1, block_size):
        key = chain(key, prompt[start : start + block_size])
        keys.append(key)
    return keys


class Keys(Sequence[int]):
    """The keys of a prompt and its answer; those of the answer are worked out when they are asked for."""

    __slots__ = ("_answer", "_block_size", "_count", "_known", "_prompt")

    def __init__(
        self, prompt: Tokens, known: Sequence[int], answer: Piece, output_tokens: int, block_size: int
    ) -> None:
        """`known` are the keys of the prompt, which several answers may share."""
        self._prompt = prompt
        self._known = list(known)
        self._answer = answer
        self._block_size = block_size
        self._count = (len(prompt) + output_tokens) // block_size

    def __len__(self) -> int:
        return self._count

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
        known, size, prompt = self._known, self._block_size, self._prompt
        while len(known) <= index:
            start = len(known) * size
            head = prompt[start : start + size]
            first = max(start - len(prompt), 0)
            tail = self._answer(first, size - len(head))
            known.append(chain(known[-1] if known else 0, [*head, *tail]))
