"""What a step costs without a device to say so: a fixed time, and more for each sequence and each token of a prompt."""

from __future__ import annotations

from loadstone.roofline.work import Work


class Linear:
    """step = step_ns + sequences * sequence_ns + prompt tokens * prefill_token_ns; contexts cost nothing."""

    window: int | None = None

    def __init__(self, step_ns: int, sequence_ns: int, prefill_token_ns: int) -> None:
        self._step_ns = step_ns
        self._sequence_ns = sequence_ns
        self._prefill_token_ns = prefill_token_ns

    def step_ns(self, work: Work) -> int:
        """See `StepCost`."""
        return (
            self._step_ns + work.sequences * self._sequence_ns + work.prefill_tokens * self._prefill_token_ns
            or 1
        )

    def steps_ns(self, work: Work, steps: int, growth: int, window_growth: int) -> list[int]:
        """See `StepCost`."""
        return [self.step_ns(work)] * steps
