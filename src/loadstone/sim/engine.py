"""The engine: requests wait, are taken into the batch, and all of the batch get one token a step.

Schedule, cost, postprocess: `begin` takes in what waits and says when the step will be over, `finish` hands out
its tokens. The caller brings the clock, real or virtual. Knows no sockets, no text, no HTTP.
"""

from __future__ import annotations

from collections import deque
from typing import Generic, TypeVar

from loadstone.sim.cost import Cost


class Sequence:
    """One request inside the engine: so many tokens in, so many out."""

    __slots__ = ("output_tokens", "produced", "prompt_tokens")

    def __init__(self, prompt_tokens: int, output_tokens: int) -> None:
        self.prompt_tokens = prompt_tokens
        self.output_tokens = output_tokens
        self.produced = 0

    @property
    def ended(self) -> bool:
        """Whether its last token is out."""
        return self.produced >= self.output_tokens


S = TypeVar("S", bound=Sequence)


class Engine(Generic[S]):
    """Continuous batching: a request joins the batch at the step after its arrival and leaves with its last token.

    A prompt is taken in whole by the step that admits it, which also brings its first token.
    """

    def __init__(self, cost: Cost, max_num_seqs: int) -> None:
        self._cost = cost
        self._max_num_seqs = max_num_seqs
        self.waiting: deque[S] = deque()
        self.running: dict[S, None] = {}
        self._step: list[S] = []
        self.step_end_ns: int | None = None
        """When the step under way is over; None between steps."""

    def add(self, sequence: S) -> None:
        """Queues a request; it is served in order of arrival."""
        self.waiting.append(sequence)

    def drop(self, sequence: S) -> None:
        """Forgets a request whose client has left; a step under way costs what it costs."""
        if sequence in self.running:
            del self.running[sequence]
        elif sequence in self.waiting:
            self.waiting.remove(sequence)

    def begin(self, at_ns: int) -> int | None:
        """Starts a step at `at_ns` and returns when it will be over; None when there is nothing to do."""
        prompt_tokens = self._admit()
        if not self.running:
            return None
        self._step = list(self.running)
        self.step_end_ns = at_ns + self._cost(prompt_tokens, len(self._step))
        return self.step_end_ns

    def _admit(self) -> int:
        prompt_tokens = 0
        while self.waiting and len(self.running) < self._max_num_seqs:
            sequence = self.waiting.popleft()
            self.running[sequence] = None
            prompt_tokens += sequence.prompt_tokens
        return prompt_tokens

    def finish(self) -> list[S]:
        """Ends the step: every sequence in it that is still here has one more token; ended ones leave."""
        served = [sequence for sequence in self._step if sequence in self.running]
        for sequence in served:
            sequence.produced += 1
            if sequence.ended:
                del self.running[sequence]
        self._step = []
        self.step_end_ns = None
        return served
