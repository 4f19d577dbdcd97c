"""Called tools: which one, and its arguments as pieces of valid JSON, one a token."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from loadstone.sim.api.asked import Call
from loadstone.sim.api.errors import refuse
from loadstone.sim.words import WORDS

ARGUMENT = "text"
"""The argument when the tool says nothing of its own."""


class Function(msgspec.Struct):
    """What a tool says of itself."""

    name: str
    parameters: dict[str, Any] | None = None


class Tool(msgspec.Struct):
    """A tool as chat spells it."""

    function: Function


class Named(msgspec.Struct):
    """A tool that has to be called: chat has its name below `function`, responses has it beside the type."""

    type: str | None = None
    function: Function | None = None
    name: str | None = None


Wanted = Literal["none", "auto", "required"] | Named


def called(functions: list[Function], wanted: Wanted | None, draw: int, calls: bool) -> Call | None:
    """The call that the answer is; None: it is text. `calls`: tools are called also where that is left open.

    Raises `ApiError`.
    """
    if isinstance(wanted, Named):
        name = wanted.function.name if wanted.function else wanted.name
        functions = [function for function in functions if function.name == name]
        if not functions:
            refuse(f"tool_choice names {name}, which is none of the tools", "tool_choice")
    elif wanted == "required" and not functions:
        refuse("tool_choice = required: there are no tools; give some", "tool_choice")
    if not functions or wanted == "none" or (wanted in (None, "auto") and not calls):
        return None
    function = functions[draw % len(functions)]
    return Call(function.name, _argument(function.parameters or {}))


def _argument(parameters: dict[str, Any]) -> str:
    """The first argument that takes a text."""
    properties = parameters.get("properties")
    for name, schema in properties.items() if isinstance(properties, dict) else ():
        if isinstance(schema, dict) and schema.get("type") == "string":
            return str(name)
    return ARGUMENT


def piece(call: Call, start_word: int, index: int, tokens: int) -> str:
    """The part of the arguments that the token `index` of `tokens` brings."""
    if tokens == 1:
        return "{}"
    if tokens == 2:
        return "{}"[index]
    if index == 0:
        return f'{{{msgspec.json.encode(call.argument).decode()}: "'
    return '"}' if index == tokens - 1 else WORDS[(start_word + index) % len(WORDS)]


def arguments(call: Call, start_word: int, tokens: int) -> str:
    """All of them."""
    return "".join(piece(call, start_word, index, tokens) for index in range(tokens))
