"""One leaf's value as its type has it, or the sentence that says what it must be."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from loadstone.config import values
from loadstone.config.options import Option
from loadstone.config.secrets import MASK, masked_fields, named_like_secret
from loadstone.errors import UsageError, did_you_mean

_SHOWN = 200


def from_texts(option: Option, given: bool | Sequence[str]) -> Any:
    """What the texts after a flag mean, not yet checked; a switch has a bool. Raises `UsageError`."""
    if isinstance(given, bool):
        return given
    if option.kind in ("list", "table"):
        return read(option, given)
    if len(given) > 1:
        raise UsageError(f"{option.path}: {option.flags[0]} is given {len(given)} times; give it once.")
    [text] = given
    return text if option.kind in ("text", "choice") else spelt(option.path, text)


def spelt(path: str, text: str) -> Any:
    """The JSON value that `text` spells for the key `path`, else `text` itself. Raises `UsageError`."""
    try:
        return values.json_or_text(text)
    except ValueError as error:
        raise UsageError(f"{path}: {error}") from None


def read(option: Option, texts: Sequence[str]) -> Any:
    """What the texts of a list or a table mean. Raises `UsageError`."""
    try:
        return option.read(texts) if option.read else list(texts)
    except ValueError as error:
        given = " ".join(texts)
        shown = MASK if named_like_secret(given) else _short(given)
        raise UsageError(f"{option.path} = {shown}: {error}") from None


def converted(option: Option, value: Any) -> Any:
    """The value as its leaf's type has it. Raises `UsageError`."""
    if option.kind == "whole" and isinstance(value, float) and value.is_integer():
        value = int(value)
    try:
        found = msgspec.convert(value, option.type)
    except msgspec.ValidationError:
        raise _refused(option, value) from None
    if (
        found == ""
        or (isinstance(found, str) and "\0" in found)
        or not values.is_json(value)
        or (option.parts and found not in option.choices)
    ):
        raise _refused(option, value)
    if _beyond(option, found):
        raise UsageError(f"{option.path} = {_short(value)}: must be at most {option.most:,}.")
    return found


def _beyond(option: Option, value: Any) -> bool:
    """Whether a number is greater than its leaf allows; a type with a limit of its own has seen to that."""
    own = any(getattr(core, "le", None) is not None for core in option.cores)
    return isinstance(value, int | float) and not own and value > option.most


def _short(value: Any) -> str:
    """A value that may have thousands of digits."""
    text = str(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def _refused(option: Option, value: Any) -> UsageError:
    """The sentence about a value of the wrong type or out of range."""
    told = masked_fields(value) if isinstance(value, dict) else value
    shown = "" if option.secret else f" = {_short(told)}"
    advice = did_you_mean(str(value), option.choices) or option.hint
    return UsageError(f"{option.path}{shown}: must be {option.expects}. {advice}".rstrip())
