"""Made-up turns: prompts of single-token words, of lengths that are given or drawn.

Lengths and words come from streams of their own, so that asking for other answer lengths, say,
leaves the prompts as they were.
"""

from __future__ import annotations

from loadstone.config import InputConfig
from loadstone.dist import normal_length
from loadstone.plan.seeds import derive
from loadstone.plan.turn import Turn
from loadstone.tokens.prompts import Prompts
from loadstone.tokens.words import Words

_TURN_BITS = 40
"""More conversations than any run has: turn t of conversation k is drawn at k + t * 2**40 of a stream."""


def place(conversation: int, position: int) -> int:
    """Where the draws for a turn are in their streams; the first turn is where its conversation's number says."""
    return conversation + (position << _TURN_BITS)


class Turns:
    """Makes the turns of one config and seed.

    Raises `UsageError` for prompts as token ids when `words` has no ids.
    """

    def __init__(self, config: InputConfig, words: Words, seed: int, template_tokens: int) -> None:
        self._config = config
        self._prompts = Prompts(words, derive(seed, "prompts"))
        if config.token_ids:
            self._prompts.ids(0, 1)
        self._isl_seed, self._osl_seed = derive(seed, "isl"), derive(seed, "osl")
        self._overhead_tokens = template_tokens if config.isl_includes_template else 0

    def turn(
        self,
        at: int,
        isl_tokens: int | None = None,
        osl_tokens: int | None = None,
        at_ns: int | None = None,
        think_ns: int = 0,
    ) -> Turn:
        """The turn of the draws at `at`; lengths that are not given are drawn."""
        config = self._config
        if isl_tokens is None:
            isl_tokens = normal_length(self._isl_seed, at, config.isl_mean, config.isl_stddev)
        isl_tokens = max(1, isl_tokens - self._overhead_tokens)
        return Turn(
            text=None if config.token_ids else self._prompts.text(at, isl_tokens),
            token_ids=self._prompts.ids(at, isl_tokens) if config.token_ids else None,
            isl_tokens=isl_tokens,
            max_tokens=self.osl_tokens(at) if osl_tokens is None else osl_tokens,
            at_ns=at_ns,
            think_ns=think_ns,
        )

    def osl_tokens(self, at: int) -> int | None:
        """The output length drawn at `at`; None where the server decides."""
        config = self._config
        if config.osl_mean is None:
            return None
        return normal_length(self._osl_seed, at, config.osl_mean, config.osl_stddev)
