"""The text of one choice, whole and token by token. Pure; knows no JSON.

One rule: what the pieces say is what the whole says. A token whose characters may begin a stop string brings them when it
is clear that they do not.
"""

from __future__ import annotations

from loadstone.sim.api import tools
from loadstone.sim.api.asked import Choice
from loadstone.sim.api.stops import shown
from loadstone.sim.words import WORDS, length, passage


def thought(choice: Choice) -> str:
    """The reasoning."""
    return passage(choice.start_word, choice.reasoning_tokens)


def text(choice: Choice) -> str:
    """What is said behind the reasoning; empty when a tool is called."""
    if choice.call:
        return ""
    said = passage(choice.start_word + choice.reasoning_tokens, spoken_tokens(choice))
    return said if choice.chars is None else said[: choice.chars]


def arguments(choice: Choice) -> str:
    """The arguments of the tool that is called; empty without one."""
    return tools.arguments(choice.call, _speech(choice), spoken_tokens(choice)) if choice.call else ""


def spoken_tokens(choice: Choice) -> int:
    """Tokens behind the reasoning."""
    return choice.output_tokens - choice.reasoning_tokens


def piece(choice: Choice, stops: tuple[str, ...], index: int) -> str:
    """What the token `index` shows."""
    place = index - choice.reasoning_tokens
    if place < 0:
        return WORDS[(choice.start_word + index) % len(WORDS)]
    if choice.call:
        return tools.piece(choice.call, _speech(choice), place, spoken_tokens(choice))
    if not stops:
        return WORDS[(choice.start_word + index) % len(WORDS)]
    begin, end = _shown(choice, stops, place), _shown(choice, stops, place + 1)
    first = max(place - max(map(len, stops)), 0)  # nothing older is still held back
    skipped = length(_speech(choice), first)
    return passage(_speech(choice) + first, place + 1 - first)[begin - skipped : end - skipped]


def _shown(choice: Choice, stops: tuple[str, ...], tokens: int) -> int:
    """Characters shown when so many tokens behind the reasoning are out."""
    if tokens == spoken_tokens(choice):
        return length(_speech(choice), tokens) if choice.chars is None else choice.chars
    return shown(_speech(choice), tokens, stops)


def _speech(choice: Choice) -> int:
    """Where the passage is behind the reasoning."""
    return choice.start_word + choice.reasoning_tokens


def token(choice: Choice, index: int) -> tuple[int, str]:
    """The place in the passage and the text of the token `index` itself, whatever is shown of it."""
    word = choice.start_word + index
    return word, piece(choice, (), index) if choice.call else WORDS[word % len(WORDS)]
