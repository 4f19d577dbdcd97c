"""One leaf's value as its type has it, or the sentence that says what it must be."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from loadstone.config import values
from loadstone.config.options import Option
from loadstone.errors import UsageError, did_you_mean


def from_texts(option: Option, given: bool | Sequence[str]) -> Any:
    """What the texts after a flag mean, not yet checked; a switch has a bool. Raises `UsageError`."""
    if isinstance(given, bool):
        return given
    if option.kind in ("list", "table"):
        return read(option, given)
    if len(given) > 1:
        raise UsageError(f"{option.path}: {option.flags[0]} is given {len(given)} times; give it once.")
    [text] = given
    return text if option.kind in ("text", "choice") else values.json_or_text(text)


def read(option: Option, texts: Sequence[str]) -> Any:
    """What the texts of a list or a table mean. Raises `UsageError`."""
    try:
        return option.read(texts) if option.read else list(texts)
    except ValueError as error:
        raise UsageError(f"{option.path} = {' '.join(texts)}: {error}") from None


def converted(option: Option, value: Any) -> Any:
    """The value as its leaf's type has it. Raises `UsageError`."""
    if option.kind == "whole" and isinstance(value, float) and value.is_integer():
        value = int(value)
    try:
        found = msgspec.convert(value, option.type)
    except msgspec.ValidationError:
        raise _refused(option, value) from None
    if found == "" or not values.is_json(value) or (option.parts and found not in option.choices):
        raise _refused(option, value)
    return found


def _refused(option: Option, value: Any) -> UsageError:
    """The sentence about a value of the wrong type or out of range."""
    shown = "" if option.secret else f" = {value}"
    advice = did_you_mean(str(value), option.choices) or option.hint
    return UsageError(f"{option.path}{shown}: must be {option.expects}. {advice}".rstrip())
