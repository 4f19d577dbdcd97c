"""Where conversations come from, one module each.

A module here (or an entry point of the group `loadstone.sources`) is a source. What it has to carry
is `Source` below. A source knows what is asked, not when, and not how a server wants it spelled.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from loadstone.config import InputConfig
from loadstone.plan.turn import Conversation
from loadstone.tokens.words import Words


class Source(Protocol):
    """What a module in this package provides."""

    SUMMARY: str
    """One line for the docs table."""

    def conversations(
        self, config: InputConfig, words: Words, seed: int, *, start: int = 0, template_tokens: int = 0
    ) -> Iterator[Conversation]:
        """The conversations from number `start` on, made as they are taken.

        Conversation k depends on (config, words, seed, template_tokens) and k only, and bears k as
        its id: any process may begin anywhere. A source without a natural end never ends.
        `template_tokens` is the chat template's overhead as the preflight measured it; it counts
        only when the lengths asked for include the template.

        Raises `UsageError` here, not while iterating, for a config it cannot serve.
        """
        ...
