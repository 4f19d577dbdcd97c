"""Made-up prompts of the lengths asked for: one turn a conversation, without end.

Lengths and words come from streams of their own, so that asking for other answer lengths, say,
leaves the prompts as they were.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

from loadstone.config import InputConfig
from loadstone.dist import normal_length
from loadstone.plan.seeds import derive
from loadstone.plan.turn import Conversation, Turn
from loadstone.tokens.prompts import Prompts
from loadstone.tokens.words import Words

SUMMARY = "Prompts made of single-token words; lengths normally distributed."


def conversations(
    config: InputConfig, words: Words, seed: int, *, start: int = 0, template_tokens: int = 0
) -> Iterator[Conversation]:
    """The conversations from number `start` on; see `Source`.

    With `config.entries` = K, conversation k asks what conversation k mod K asked.
    Raises `UsageError` for prompts as token ids when `words` has no ids.
    """
    prompts = Prompts(words, derive(seed, "prompts"))
    if config.token_ids:
        prompts.ids(0, 1)
    isl_seed, osl_seed = derive(seed, "isl"), derive(seed, "osl")
    overhead_tokens = template_tokens if config.isl_includes_template else 0

    def turn(entry: int) -> Turn:
        length = normal_length(isl_seed, entry, config.isl_mean, config.isl_stddev)
        isl_tokens = max(1, length - overhead_tokens)
        return Turn(
            text=None if config.token_ids else prompts.text(entry, isl_tokens),
            token_ids=prompts.ids(entry, isl_tokens) if config.token_ids else None,
            isl_tokens=isl_tokens,
            max_tokens=None
            if config.osl_mean is None
            else normal_length(osl_seed, entry, config.osl_mean, config.osl_stddev),
        )

    entries = config.entries
    return (
        Conversation(id=number, turns=(turn(number % entries if entries else number),))
        for number in count(start)
    )
