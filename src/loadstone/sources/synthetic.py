"""Made-up prompts of the lengths asked for, in conversations of one turn or several, without end.

The number of turns and the think times come from streams of their own too: the n-th turn of a conversation is the same
however many there are.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

from loadstone.config import InputConfig
from loadstone.dist import normal, normal_length
from loadstone.plan.arrivals import LATEST_NS
from loadstone.plan.seeds import derive
from loadstone.plan.turn import Conversation, Turn
from loadstone.sources._made import Turns, place
from loadstone.tokens import Tokenizer

SUMMARY = "Prompts made of single-token words; lengths, turns and think times normally distributed."
_MS = 1_000_000


def distinct(config: InputConfig) -> int | None:
    """`config.entries`; see `Source`."""
    return config.entries


def conversations(
    config: InputConfig, tokenizer: Tokenizer, seed: int, *, template_tokens: int = 0
) -> Synthetic:
    """See `Source`. Raises `UsageError` for prompts as token ids when the tokenizer has no ids."""
    return Synthetic(config, seed, Turns(config, tokenizer.words, seed, template_tokens))


class Synthetic:
    """See `Conversations`."""

    def __init__(self, config: InputConfig, seed: int, made: Turns) -> None:
        self._config = config
        self._made = made
        self._turns_seed, self._think_seed = derive(seed, "turns"), derive(seed, "think")
        self._single = config.turns_mean < 1.5 and config.turns_stddev == 0

    def outlines(self) -> Iterator[Conversation]:
        """See `Conversations`."""
        if self._single:
            return (Conversation(id=number, turns=_SINGLE) for number in count())
        return (Conversation(id=number, turns=self._outline(self._entry(number))) for number in count())

    def conversation(self, number: int) -> Conversation:
        """See `Conversations`."""
        entry = self._entry(number)
        if self._single:
            return Conversation(id=number, turns=(self._made.turn(entry),))
        turns = (
            self._made.turn(place(entry, position), think_ns=outline.think_ns)
            for position, outline in enumerate(self._outline(entry))
        )
        return Conversation(id=number, turns=tuple(turns))

    def _entry(self, number: int) -> int:
        return number % self._config.entries if self._config.entries else number

    def _outline(self, entry: int) -> tuple[Turn, ...]:
        config = self._config
        turns = normal_length(self._turns_seed, entry, config.turns_mean, config.turns_stddev)
        later = (Turn(think_ns=self._think_ns(place(entry, position))) for position in range(1, turns))
        return (*_SINGLE, *later)

    def _think_ns(self, at: int) -> int:
        config = self._config
        think_ms = normal(self._think_seed, at, config.think_mean_ms, config.think_stddev_ms, 0.0)
        return round(min(think_ms * config.think_ratio * _MS, LATEST_NS))


_SINGLE = (Turn(),)
