"""Requests that bring no text: the engine takes the prompts in, and the answer is there with the step that ends the last."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from typing import Any

from loadstone.sim.api.answer import Answer
from loadstone.sim.api.asked import Asked, Choice, Kind
from loadstone.sim.api.errors import refuse
from loadstone.sim.api.request import room_tokens
from loadstone.sim.keys import Tokens
from loadstone.sim.options import SimOptions

MOST_TEXTS = 2_048
"""In one request; OpenAI's bound for embeddings."""


def asked(
    kind: Kind, model: str, prompts: Sequence[Tokens], priority: int, options: SimOptions, details: Any
) -> Asked:
    """What such a request comes to: a sequence for each prompt. Raises `ApiError`."""
    if not prompts:
        refuse("there is nothing in it; give at least one text", "input")
    check_count(len(prompts))
    for prompt in prompts:
        if not prompt:
            refuse("one of the texts is empty", "input")
        room_tokens(len(prompt), options)
    return Asked(
        kind,
        model,
        tuple(Choice(prompt, 1) for prompt in prompts),
        sum(map(len, prompts)),
        priority=priority,
        block_size=options.block_size if options.enable_prefix_caching else 0,
        details=details,
    )


def check_count(texts: int) -> None:
    """Refuses more texts than one request may have."""
    if texts > MOST_TEXTS:
        refuse(f"{texts} texts are more than {MOST_TEXTS}; send several requests", "input")


def digest(purpose: bytes, *texts: Any, size: int) -> bytes:
    """Bytes that are a function of the texts (SHAKE-128)."""
    return hashlib.shake_128(b"\0".join([purpose, *(repr(text).encode() for text in texts)])).digest(size)


class Pooled(Answer):
    """An answer that comes whole."""

    def token(self, index: int, choice: int = 0) -> bytes:
        """Nothing: it is not streamed."""
        return b""

    def whole(self) -> bytes:
        """The body."""
        return b"".join(self.slices())

    def slices(self) -> Iterator[bytes]:
        """The body in pieces, a text at a time: spelling all of them takes longer than a step may wait. Some are empty."""
        raise NotImplementedError

    def usage(self, tokens: int = 0) -> dict[str, Any]:
        """Prompts only."""
        return {"prompt_tokens": self.asked.prompt_tokens, "total_tokens": self.asked.prompt_tokens}
