"""Messages as prompt tokens: the words of each, and `MESSAGE_TOKENS` separators behind it.

An answer's words follow right behind, and separators end it too when the next turn sends it back: so the prompt of a
turn begins with the prompt and the answer of the turn before it, token for token.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from loadstone.sim.words import MESSAGE_TOKENS, SEPARATOR

_END = [SEPARATOR] * MESSAGE_TOKENS


class Part(msgspec.Struct):
    """A piece of a message; what is no text counts as nothing."""

    type: str | None = None
    text: str | None = None


class Function(msgspec.Struct):
    """A function that was called."""

    name: str | None = None
    arguments: str | None = None


class ToolCall(msgspec.Struct):
    """A call that an earlier answer made."""

    function: Function | None = None


class Message(msgspec.Struct):
    """One message of chat."""

    role: str
    content: str | list[Part] | None = None
    tool_calls: list[ToolCall] | None = None

    def texts(self) -> list[str]:
        """All that it says."""
        content = self.content
        texts = [part.text or "" for part in content] if isinstance(content, list) else [content or ""]
        for call in self.tool_calls or ():
            if call.function:
                texts += [call.function.name or "", call.function.arguments or ""]
        return texts


def tokens(messages: Iterable[Message]) -> list[str]:
    """The prompt of a conversation."""
    found: list[str] = []
    for message in messages:
        for text in message.texts():
            found += text.split()
        found += _END
    return found


def of_tools(tools: Any) -> list[str]:
    """What a template adds for the tools: their definition as JSON, word by word; nothing without any."""
    if not tools:
        return []
    return [*msgspec.json.format(msgspec.json.encode(tools), indent=1).decode().split(), *_END]
