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
        "prefill_kv_tokens",
        "prefill_pairs",
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
        self.prefill_kv_tokens = 0
        """Those of `kv_tokens` that chunks of prompts read."""
        self.prefill_pairs = 0
        """Those of `pairs` that are of prompts."""
        self.window_kv_tokens = 0
        """`kv_tokens` in a windowed layer; equal to it where the cost knows no window."""
        self.window_pairs = 0
        """`pairs` in a windowed layer."""


def decodes(sequences: int, context: int, window: int | None = None) -> Work:
    """A step in which so many sequences get one token each, with a context of `context` tokens, that one included."""
    work = Work()
    work.new_tokens = work.sequences = sequences
    work.kv_tokens = work.pairs = sequences * context
    work.window_kv_tokens = work.window_pairs = sequences * (min(context, window) if window else context)
    return work


def prompt(tokens: int, before: int = 0, window: int | None = None) -> Work:
    """A step that takes in so many tokens of one prompt, behind `before` others whose keys and values are there."""
    work = Work()
    work.sequences = 1
    work.new_tokens = work.prefill_tokens = tokens
    work.kv_tokens = work.window_kv_tokens = work.prefill_kv_tokens = before + tokens
    work.pairs = work.window_pairs = work.prefill_pairs = tokens * before + tokens * (tokens + 1) // 2
    if window:
        over = max(before + tokens - window, 0)  # those of the new tokens that see fewer than all before them
        beyond = max(before - window, 0)
        work.window_kv_tokens = min(before, window - 1) + tokens
        work.window_pairs -= (over * (over + 1) - beyond * (beyond + 1)) // 2
    return work


def together(one: Work, other: Work) -> Work:
    """Both in one step."""
    work = Work()
    for name in Work.__slots__:
        setattr(work, name, getattr(one, name) + getattr(other, name))
    return work


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
