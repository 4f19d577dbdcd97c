"""The server's own words, found in an error of whatever shape.

Known shapes: `{"error": {"message", "code"}}`, `{"error": "text"}`, `{"object": "error", "message", "code"}`,
`{"message", "code"}`, `{"detail": ...}` (FastAPI), plain text.
"""

from __future__ import annotations

from typing import Any, Protocol

import msgspec

NOT_JSON = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What decoding raises for bytes that are not the JSON expected, nesting without end among them."""

WORDLESS = "the server told of an error without a word"

_MESSAGES = ("error", "message", "detail", "msg")
_LEVELS = 4


class Fields(msgspec.Struct, gc=False):
    """The fields by which an event or a body tells of an error; an endpoint's types begin with them."""

    error: Any = None
    message: Any = None
    code: Any = None
    detail: Any = None


def words(value: Any) -> str:
    """The message in `value`, with its code behind it when it has one; "" when there is nothing in it."""
    code = None
    for _ in range(_LEVELS):
        if not isinstance(value, dict):
            break
        code = _code(value.get("code")) or code
        inner = next((value[key] for key in _MESSAGES if value.get(key) and value[key] is not True), None)
        if inner is None:
            break
        value = inner
    text = value.strip() if isinstance(value, str) else as_json(value)
    return text if code is None or f"({code})" in text else f"{text} ({code})"


def _code(value: Any) -> str | None:
    return str(value) if isinstance(value, str | int) and value and value is not True else None


def as_json(value: Any) -> str:
    """A value that came as JSON, spelled as JSON again."""
    try:
        return msgspec.json.encode(value).decode()
    except RecursionError:
        return "a value that is nested too deeply to be shown"


def of_text(data: bytes) -> str:
    """The message in the data of an error event, or in the body of an error response; "" when it is empty."""
    try:
        return words(msgspec.json.decode(data))
    except NOT_JSON:
        return data.decode("utf-8", "replace").strip()


class Told(Protocol):
    """What has the fields of `Fields`."""

    error: Any
    message: Any
    code: Any
    detail: Any


def in_band(told: Told, has_choices: bool) -> str | None:
    """The error that an event or a body tells of; a bare message is one only where no choices are."""
    if told.error or (not has_choices and (told.message or told.detail)):
        every = {"error": told.error, "message": told.message, "detail": told.detail, "code": told.code}
        return words(every) or WORDLESS
    return None
