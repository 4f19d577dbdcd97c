"""Where conversations come from, one module each.

A module here (or an entry point of the group `loadstone.sources`) is a source. What it has to carry
is `Source` below. A source knows what is asked, not when, and not how a server wants it spelled.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from loadstone.config import InputConfig
from loadstone.plan.turn import Conversation
from loadstone.tokens import Tokenizer


class Source(Protocol):
    """What a module in this package provides."""

    SUMMARY: str
    """One line for the docs table."""

    def distinct(self, config: InputConfig) -> int | None:
        """How many conversations there are before they are asked again: number k then asks what k mod so many asked.

        None: no end of them. Raises `UsageError` for data that cannot be read or used.
        """
        ...

    def conversations(
        self, config: InputConfig, tokenizer: Tokenizer, seed: int, *, template_tokens: int = 0
    ) -> Conversations:
        """The conversations that a config means.

        `template_tokens` is the chat template's overhead as the preflight measured it; it counts
        only when the lengths asked for include the template. Raises `UsageError` for a config it cannot serve.
        """
        ...


class Conversations(Protocol):
    """Conversations by their numbers, from 0 on; each bears its number as its id.

    Conversation k depends on what `Source.conversations` was given and k only: any process may begin anywhere.
    """

    def outlines(self) -> Iterator[Conversation]:
        """All of them in their order, made as they are taken, but with nothing in their turns beside `at_ns` and `think_ns`.

        From these the schedule is made, so that going on far into a plan does not cost the prompts before.
        """
        ...

    def conversation(self, number: int) -> Conversation:
        """One of them, whole."""
        ...


def source_of(config: InputConfig) -> str:
    """The name of the source that a config means."""
    return "timed" if config.file else "synthetic"
