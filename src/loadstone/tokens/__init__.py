"""Tokenizers: what counts tokens and knows words that are one token each.

`load` turns a name into a tokenizer without touching the network. Importing this package loads no
vocabulary and no tokenizer library. A tokenizer knows nothing of chat templates or special tokens:
it counts content.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Protocol

from loadstone.tokens.vocabulary import Vocabulary, builtin_file, local_file
from loadstone.tokens.words import COMMON, Words, common

BUILTIN = "builtin"
NONE = "none"


class Tokenizer(Protocol):
    """Counts tokens, and has the words that prompts are made of."""

    @property
    def name(self) -> str:
        """As it was asked for."""
        ...

    @property
    def digest(self) -> str:
        """SHA-256 of the vocabulary, hex."""
        ...

    @property
    def exact(self) -> bool:
        """Whether prompts made of `words` have exactly the lengths asked for."""
        ...

    @property
    def flaw(self) -> str | None:
        """Why they do not, in one sentence; None when they do."""
        ...

    @property
    def words(self) -> Words:
        """The words for prompts."""
        ...

    def count(self, text: str) -> int | None:
        """Tokens of `text`, without special tokens; None without a vocabulary to count by."""
        ...

    def count_many(self, texts: Sequence[str]) -> list[int] | None:
        """Tokens of each text; None without a vocabulary to count by."""
        ...


class Tokenless:
    """The mode without a tokenizer: one everyday word is taken for one token, and nothing is counted.

    It does not guess at the length of an answer: a throughput made of guesses would look like one
    that was measured.
    """

    name = NONE
    exact = False
    flaw = "without a tokenizer one everyday word is taken for one token."
    words = common(flaw)
    digest = hashlib.sha256(" ".join(COMMON).encode()).hexdigest()

    def count(self, text: str) -> None:
        """None: nothing to count by."""
        return

    def count_many(self, texts: Sequence[str]) -> None:
        """None: nothing to count by."""
        return


def load(name: str) -> Tokenizer:
    """The tokenizer `name`: `builtin`, `none`, or a tokenizer.json or a folder that holds one.

    Raises `UsageError` when there is no such file; a file that is no vocabulary is found out when
    `words` or a count is first asked for, and is a `UsageError` as well.
    """
    if name == NONE:
        return Tokenless()
    return Vocabulary(name, builtin_file() if name == BUILTIN else local_file(name))
