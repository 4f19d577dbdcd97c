"""One leaf's value as its type has it, or the sentence that says what it must be."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from loadstone.config import values
from loadstone.config.options import Option
from loadstone.config.rules import as_typed
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
        shown = MASK if named_like_secret(given) else _short(given or '""')
        raise UsageError(f"{option.path} = {shown}: {error}") from None


def written(option: Option, value: Any) -> Any:
    """A value of a file: a list or a table may also be written as its flag has it, `goodput = "request_latency:200"`."""
    return read(option, [value]) if option.read and isinstance(value, str) else value


def converted(option: Option, value: Any) -> Any:
    """The value as its leaf's type has it. Raises `UsageError`."""
    if option.kind == "list" or "inf" in option.choices:
        value = _with_word(value)
    if option.kind == "whole" and isinstance(value, float) and value.is_integer():
        value = int(value)
    try:
        found = msgspec.convert(value, option.type)
    except msgspec.ValidationError:
        raise _refused(option, value) from None
    if _empty(found, option.default) or _unfit(option, value) or _unknown(option, found):
        raise _refused(option, value)
    for name, number in _numbers(option, found):
        if _beyond(option, number):
            raise UsageError(f"{option.path}{name} = {_short(number)}: must be at most {option.most:,}.")
    return found


def _with_word(value: Any) -> Any:
    """A value with the word for infinity, where TOML and YAML have a number that JSON has not."""
    if isinstance(value, list):
        return [_with_word(item) for item in value]
    if isinstance(value, dict):
        return {name: _with_word(item) for name, item in value.items()}
    return "inf" if isinstance(value, float) and value == math.inf else value


def _empty(value: Any, default: Any) -> bool:
    """Whether it is, or holds, a text that says nothing or ends early for others, or is no list where one must be."""
    if isinstance(value, tuple):
        return (not value and bool(default)) or any(_empty(item, None) for item in value)
    return value == "" or (isinstance(value, str) and "\0" in value)


def _unfit(option: Option, value: Any) -> bool:
    """Whether JSON cannot carry it; of tables that have keys of their own, whoever reads those looks at each value."""
    return not option.holds_tables and not values.is_json(value)


def _unknown(option: Option, value: Any) -> bool:
    return bool(option.parts) and value not in option.choices


def _numbers(option: Option, value: Any) -> Iterator[tuple[str, float]]:
    """Every number that a leaf's type knows of, and what names it within the leaf."""
    if isinstance(value, tuple):
        yield from (pair for item in value for pair in _numbers(option, item))
    elif isinstance(value, dict) and option.holds_numbers:
        yield from ((f".{name}", number) for name, number in value.items())
    elif isinstance(value, int | float):
        yield "", value


def _beyond(option: Option, number: float) -> bool:
    """Whether a number is greater than its leaf allows; a type with a limit of its own has seen to that."""
    own = any(getattr(core, "le", None) is not None for core in option.cores)
    return not own and number > option.most


def _short(value: Any) -> str:
    """A value that may have thousands of digits."""
    text = as_typed(value) if isinstance(value, list | tuple) else str(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def _quoted(value: Any) -> str:
    """A value as `_short` has it; a text that would be taken for something else, or for nothing, in quotes."""
    return f'"{value}"' if isinstance(value, str) and _is_taken_otherwise(value) else _short(value)


def _is_taken_otherwise(text: str) -> bool:
    short = len(text) <= _SHOWN and values.is_json(text)
    return short and not (text and isinstance(values.json_or_text(text), str))


def _refused(option: Option, value: Any) -> UsageError:
    """The sentence about a value of the wrong type or out of range."""
    told = masked_fields(value) if isinstance(value, dict) else value
    shown = "" if option.secret else f" = {_quoted(told)}"
    advice = did_you_mean(str(value), option.choices) or option.hint
    return UsageError(f"{option.path}{shown}: must be {option.expects}. {advice}".rstrip())
