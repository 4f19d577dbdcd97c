"""What one engine step does, as sums over its sequences, and what a cost is: a function of them. Knows no requests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol


class Work:
    """One step as sums over its sequences; the engine changes one object from step to step.

    A decoding sequence computes one token (with speculation, the draft's tokens too), a chunk of a prompt many.
    """

    __slots__ = (
        "kv_tokens",
        "new_tokens",
        "pairs",
        "prefill_tokens",
        "sequences",
        "window_kv_tokens",
        "window_pairs",
    )

    def __init__(self) -> None:
        self.new_tokens = 0
        """Tokens computed, of prompts and of decodes."""
        self.prefill_tokens = 0
        """Those of them that are of prompts."""
        self.sequences = 0
        """Sequences in the step."""
        self.kv_tokens = 0
        """Tokens whose keys and values are read: each sequence's context, its new tokens included."""
        self.pairs = 0
        """Query-key pairs: for every new token the tokens up to itself."""
        self.window_kv_tokens = 0
        """`kv_tokens` in a windowed layer; equal to it where the cost knows no window."""
        self.window_pairs = 0
        """`pairs` in a windowed layer."""


class StepCost(Protocol):
    """How long steps take."""

    window: int | None
    """Tokens that windowed layers attend to; None where there are no such layers, and the sums for them are not kept."""

    def step_ns(self, work: Work) -> int:
        """The duration of one step in ns, at least 1."""

    def steps_ns(self, work: Work, steps: int, growth: int, window_growth: int) -> Sequence[int]:
        """The durations of so many steps of decodes alone, as if `step_ns` were called for each.

        From step to step `kv_tokens` and `pairs` grow by `growth`, those of windowed layers by `window_growth`; nothing
        else changes. The numbers are exactly those of `step_ns`.
        """
