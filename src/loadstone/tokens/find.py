"""Finds the words of a vocabulary that are one token each, and tries prompts made of them.

One rule: the tokenizer decides. Its token strings only suggest candidates; a word counts when
encoding it where it will stand adds exactly one token. Costs most of a second of CPU for a large
vocabulary, so the outcome is kept (`cache`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING

from msgspec import structs

from loadstone.tokens.prompts import Prompts
from loadstone.tokens.words import Words, common

if TYPE_CHECKING:
    from tokenizers import Tokenizer

MOST = 16_384
"""Candidates tried, lowest ids first: vocabularies are learned by frequency, and rarer words are hardly ever drawn."""
FEWEST = 64
"""With fewer words than this prompts would be too much alike."""
TRIAL_SEED = 1
TRIAL_TOKENS = (1, 2, 3, 5, 8, 13, 21, 34, 55, 144)
TRIALS_PER_LENGTH = 20

_spelling = re.compile("[Ġ▁]?([a-z]{2,})").fullmatch
"""Ġ marks a leading space in byte-level BPE vocabularies, ▁ in those of sentencepiece."""


def find(engine: Tokenizer) -> Words:
    """The words of `engine`'s vocabulary, with a flaw if prompts made of them miss their lengths."""
    rest = dict(_added(engine, "the ", list(islice(_candidates(engine), MOST)), alone="the"))
    first = _first(engine, list(rest))
    if min(len(first), len(rest)) < FEWEST:
        return common(
            f"only {len(first)} words are single tokens at the start of a text and {len(rest)} after "
            "a space, so everyday words are used, one counted as one token."
        )
    words = Words(
        first=tuple(first),
        first_ids=tuple(first.values()),
        rest=tuple(rest),
        rest_ids=tuple(rest.values()),
    )
    return _tried(engine, words)


def _candidates(engine: Tokenizer) -> Iterator[str]:
    """Lowercase ASCII words among the tokens, each once, in the order of their ids."""
    seen = set()
    for number in range(engine.get_vocab_size(with_added_tokens=False)):
        word = _word(engine, number)
        if word and word not in seen:
            seen.add(word)
            yield word


def _word(engine: Tokenizer, number: int) -> str | None:
    """The word that token `number` spells, with or without a leading space; None for other tokens."""
    match = _spelling(engine.id_to_token(number) or "")
    return match[1] if match else None


def _first(engine: Tokenizer, words: Sequence[str]) -> dict[str, int]:
    """Those of `words` that may begin a prompt, with their ids at the start of a text.

    Chat templates often put a newline before the content. A byte-level BPE does not mind; in a
    sentencepiece vocabulary a word after a newline is another token than at the start of a text. So
    words that are one token in both places are preferred.
    """
    start = dict(_added(engine, "", words))
    line = [word for word, _ in _added(engine, "the\n", list(start))]
    return {word: start[word] for word in line} if len(line) >= FEWEST else start


def _added(
    engine: Tokenizer, before: str, words: Sequence[str], alone: str | None = None
) -> Iterator[tuple[str, int]]:
    """Those of `words` that, put behind `before`, add exactly their own token to it, with its id.

    `alone` is spelled instead of `before` where nothing follows (a space at the end of a text is a
    token of its own).
    """
    (lead,) = encode(engine, [before if alone is None else alone])
    for word, ids in zip(words, encode(engine, [before + word for word in words]), strict=True):
        if len(ids) == len(lead) + 1 and _word(engine, ids[-1]) == word:
            yield word, ids[-1]


def encode(engine: Tokenizer, texts: list[str]) -> list[list[int]]:
    """Token ids of each text, without special tokens."""
    return [encoding.ids for encoding in engine.encode_batch_fast(texts, add_special_tokens=False)]


def _tried(engine: Tokenizer, words: Words) -> Words:
    """`words`, with a flaw if some of 200 prompts do not come out as they were meant."""
    prompts = Prompts(words, TRIAL_SEED)
    asks = list(enumerate(TRIAL_TOKENS * TRIALS_PER_LENGTH))
    came = encode(engine, [prompts.text(index, n_tokens) for index, n_tokens in asks])
    wrong = sum(
        tuple(ids) != prompts.ids(index, n_tokens) for (index, n_tokens), ids in zip(asks, came, strict=True)
    )
    if not wrong:
        return words
    return structs.replace(
        words,
        flaw=f"{wrong} of {len(asks)} trial prompts came out as other tokens than meant; "
        "the tokenizer seems to join words across spaces.",
    )
