"""Finds the words of a vocabulary that are one token each, and tries prompts made of them.

One rule: the tokenizer decides. Its token strings only suggest candidates; a word counts when
encoding it where it will stand adds exactly one token. Costs most of a second of CPU for a large
vocabulary, so the outcome is kept (`cache`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
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

_candidate = re.compile("[Ġ▁]?([a-z]{2,})").fullmatch
"""Ġ marks a leading space in byte-level BPE vocabularies, ▁ in those of sentencepiece."""


def find(engine: Tokenizer) -> Words:
    """The words of `engine`'s vocabulary, with a flaw if prompts made of them miss their lengths."""
    words = _pick(engine, list(islice(_candidates(engine), MOST)))
    if min(len(words.first), len(words.rest)) < FEWEST:
        return common(
            f"only {len(words.first)} words are single tokens at the start of a text and "
            f"{len(words.rest)} after a space, so everyday words are used, one counted as one token."
        )
    return _tried(engine, words)


def _candidates(engine: Tokenizer) -> Iterator[str]:
    """Lowercase ASCII words among the tokens, each once, in the order of their ids."""
    seen = set()
    for token in map(engine.id_to_token, range(engine.get_vocab_size(with_added_tokens=False))):
        match = _candidate(token or "")
        if match and match[1] not in seen:
            seen.add(match[1])
            yield match[1]


def _pick(engine: Tokenizer, candidates: Sequence[str]) -> Words:
    rest = dict(_added(engine, "the ", candidates, lead="the"))
    start = dict(_added(engine, "", rest))
    # Chat templates often put a newline before the content. A byte-level BPE does not mind; in a
    # sentencepiece vocabulary a word after a newline is another token than at the start of a text.
    line = dict(_added(engine, "the\n", start))
    first = line if len(line) >= FEWEST else start
    return Words(
        first=tuple(first),
        first_ids=tuple(start[word] for word in first),
        rest=tuple(rest),
        rest_ids=tuple(rest.values()),
    )


def _added(
    engine: Tokenizer, before: str, words: Iterable[str], lead: str | None = None
) -> Iterator[tuple[str, int]]:
    """Those of `words` that are exactly one token more than `lead` when put behind `before`, with its id."""
    words = list(words)
    expected = len(encode(engine, [before if lead is None else lead])[0]) + 1
    for word, ids in zip(words, encode(engine, [before + word for word in words]), strict=True):
        if len(ids) == expected:
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
        "the tokenizer joins words across spaces.",
    )
