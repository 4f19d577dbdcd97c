"""What one engine step costs. A cost is a function of what the step does; it knows neither requests nor clocks."""

from __future__ import annotations

from collections.abc import Callable

Cost = Callable[[int, int], int]
"""(prompt tokens taken in by this step, sequences in its batch) -> duration in ns."""


def linear(step_ns: int, sequence_ns: int, prefill_token_ns: int) -> Cost:
    """A fixed time, and more for each sequence and for each prompt token.

    step = step_ns + sequences * sequence_ns + prompt tokens * prefill_token_ns
    """

    def cost(prompt_tokens: int, sequences: int) -> int:
        return step_ns + sequences * sequence_ns + prompt_tokens * prefill_token_ns

    return cost
