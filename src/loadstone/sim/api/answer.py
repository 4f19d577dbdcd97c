"""What every answer has: an id, a body at the end, a usage; those that are streamed, events.

The order of a stream: `opening`, the `token`s of the choices in whatever order the engine brings them, behind the last one
of a choice its `ending`, behind the last one of all the `closing`. Knows no HTTP and no time but its own date.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from loadstone.sim.api.asked import Asked

DONE = b"data: [DONE]\n\n"


class Answer:
    """One answer. Spelt from what was asked; `cached_tokens` is told while it goes on."""

    def __init__(self, asked: Asked, answer_id: str, created: int) -> None:
        self.asked = asked
        self.id = answer_id
        self.created = created
        """Unix seconds."""
        self.cached_tokens: int | None = None
        """Tokens of the prompt that the engine had in its prefix cache; None: there was no engine."""

    def opening(self) -> bytes:
        """What comes before the first token."""
        return b""

    def token(self, index: int, choice: int = 0) -> bytes:
        """The event of the output token `index` of a choice."""
        raise NotImplementedError

    def ending(self, choice: int = 0) -> bytes:
        """What comes after the last token of a choice."""
        return b""

    def closing(self) -> bytes:
        """What comes when all choices have ended."""
        return b""

    def whole(self) -> bytes:
        """The body of an answer that is not streamed."""
        raise NotImplementedError

    def slices(self) -> Iterator[bytes]:
        """The same in pieces that take less long to spell; for an answer that has no tokens."""
        yield self.whole()

    def usage(self, tokens: int) -> dict[str, Any]:
        """The usage when so many output tokens are out."""
        asked = self.asked
        usage: dict[str, Any] = {
            "prompt_tokens": asked.prompt_tokens,
            "total_tokens": asked.prompt_tokens + tokens,
            "completion_tokens": tokens,
        }
        if self.cached_tokens is not None:
            usage["prompt_tokens_details"] = {"cached_tokens": self.cached_tokens}
        reasoning = sum(choice.reasoning_tokens for choice in asked.choices)
        if reasoning:
            usage["completion_tokens_details"] = {"reasoning_tokens": min(tokens, reasoning)}
        return usage


def event(data: Any) -> bytes:
    """An event of a stream."""
    return b"data: %b\n\n" % msgspec.json.encode(data)
