"""One request inside an engine: so many tokens in, so many out, and where it stands. Knows no text and no sockets."""

from __future__ import annotations

from array import array
from collections.abc import Sequence as Keys


class Sequence:
    """One request inside an engine. What is set after `output_tokens` is the engine's to change.

    `keys` has one number for each full block of the prompt and the answer behind it: equal beginnings have equal keys.
    Without any nothing of it is cached. `draw` is what chance has to go by (see `Speculative`): the same request draws the
    same, wherever it is asked and whatever came before; None: its number among all that came.
    """

    __slots__ = (
        "_times",
        "base",
        "blocks",
        "cached_tokens",
        "computed",
        "draw",
        "engine",
        "joined",
        "keys",
        "last_step",
        "named",
        "order",
        "output_tokens",
        "pace",
        "place",
        "preemptions",
        "priority",
        "prompt_tokens",
        "remote",
        "scheduled_ns",
        "surplus",
        "target",
        "turn",
    )

    def __init__(
        self,
        prompt_tokens: int,
        output_tokens: int,
        *,
        keys: Keys[int] = (),
        priority: int = 0,
        draw: int | None = None,
    ) -> None:
        self.prompt_tokens = prompt_tokens
        self.output_tokens = output_tokens
        self.keys = keys
        self.priority = priority
        """The lower, the sooner."""
        self.draw = draw
        self.order = 0
        """Its number among all that came to the engine, or to the deployment that it is part of."""
        self.engine: int | None = None
        """The number of the engine of a deployment that has it, had it last or gets it; None before it comes to one."""
        self.place = 0
        """Its place in the batch that it is in, or was in last: the lower, the earlier it came to it."""
        self.scheduled_ns: int | None = None
        """When the first step with a part of it began."""
        self.cached_tokens = 0
        """Tokens of its prompt that were found in the prefix cache when it was first scheduled."""
        self.preemptions = 0
        self.remote = False
        """Its keys and values come from another engine, all but those of the last token."""
        self.target = prompt_tokens
        """Tokens to take in before the next one comes out: the prompt, after a preemption the answer so far as well."""
        self.computed = 0
        """Those of them that have been."""
        self.blocks = 0
        """Blocks it holds; while it decodes, those it held when that began."""
        self.named = 0
        """Of its keys so many, from the first on, are held in the prefix cache under its name too."""
        self.base = 0
        """Tokens that had come out when it began to decode, the first of this stretch included."""
        self.joined: int | None = None
        """The step that brought it to decoding; None while it does not."""
        self.last_step = 0
        """The step that will bring its last token."""
        self.turn = 0
        """It needs another block in steps that leave this remainder."""
        self.pace: Keys[int] = ()
        """With speculation: tokens that have come out, since it began to decode, after each of its steps."""
        self.surplus = 0
        """Draft tokens that its last step had accepted and that come after its end."""
        self._times = array("q")

    @property
    def ended(self) -> bool:
        """Whether its last token is out and it has left the engine."""
        return self.joined is None and self.base >= self.output_tokens

    def produced(self, step: int) -> int:
        """Tokens that are out when so many steps of its engine are over."""
        if self.joined is None:
            return self.base
        steps = step - self.joined
        return self.base + (self.pace[steps] if self.pace else steps)

    def times(self) -> array[int]:
        """The end of the step that brought each token, in ns; all of them when it has left the engine."""
        return self._times

    def note_times(self, ends: array[int]) -> None:
        """Keeps the times of the tokens of a stretch of decoding; `ends` are those of its steps."""
        if not self.pace:
            self._times.extend(ends)
            return
        before = -1  # the first token of the stretch is the prompt's
        for end_ns, after in zip(ends, self.pace, strict=False):
            self._times.extend([end_ns] * (after - before))
            before = after
