"""Messages as prompt tokens: the words of each, and `MESSAGE_TOKENS` separators behind it.

An answer's words follow right behind, and separators end it too when the next turn sends it back: so the prompt of a
turn begins with the prompt and the answer of the turn before it, token for token.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import msgspec

from loadstone.sim.api.errors import refuse
from loadstone.sim.words import MESSAGE_TOKENS, SEPARATOR

MOST_TOOLS_BYTES = 1 << 20
"""Of the definitions of tools as JSON."""
_END = [SEPARATOR] * MESSAGE_TOKENS
_JSON_TOKENS = re.compile(r'(?:\{\}|\[\]|[][{}]),?|(?:"(?:[^"\\]|\\.)*"|[^][{}",:]+)[:,]?')
"""Brackets, names and values, each with the sign behind it."""


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
    """What a template adds for the tools: their definition as JSON, word by word; nothing without any.

    The words are those of JSON that is spread over lines, one for each value, but it is never written so: a deep list
    would have more blanks than memory. Raises `ApiError` for more than `MOST_TOOLS_BYTES`.
    """
    if not tools:
        return []
    spelt = msgspec.json.encode(tools)
    if len(spelt) > MOST_TOOLS_BYTES:
        refuse(f"tools: {len(spelt)} bytes as JSON are more than {MOST_TOOLS_BYTES}; give fewer", "tools")
    found: list[str] = []
    for token in _JSON_TOKENS.findall(spelt.decode()):
        found += token.split()
    return found + _END
