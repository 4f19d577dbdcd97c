"""The server's own words, found in an error of whatever shape.

Known shapes: `{"error": {"message", "code"}}`, `{"error": "text"}`, `{"object": "error", "message", "code"}`,
`{"message", "code"}`, `{"detail": ...}` (FastAPI), plain text.
"""

from __future__ import annotations

from typing import Any

import msgspec

NOT_JSON = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What decoding raises for bytes that are not the JSON expected, nesting without end among them."""

_MESSAGES = ("error", "message", "detail", "msg")
_LEVELS = 4


class Fields(msgspec.Struct, gc=False):
    """The fields by which an event or a body tells of an error; an endpoint's types begin with them."""

    error: Any = None
    message: Any = None
    code: Any = None
    detail: Any = None


def words(value: Any) -> str:
    """The message in `value`, with its code behind it when it has one."""
    code = None
    for _ in range(_LEVELS):
        if not isinstance(value, dict):
            break
        code = value.get("code") or code
        inner = next((value[key] for key in _MESSAGES if value.get(key)), None)
        if inner is None:
            break
        value = inner
    text = value.strip() if isinstance(value, str) else _json(value)
    return text if code is None or f"({code})" in text else f"{text} ({code})"


def _json(value: Any) -> str:
    try:
        return msgspec.json.encode(value).decode()
    except RecursionError:
        return "an error that is nested too deeply to be shown"


def of_text(data: bytes) -> str:
    """The message in the data of an error event, or in the body of an error response."""
    try:
        return words(msgspec.json.decode(data))
    except NOT_JSON:
        return data.decode("utf-8", "replace").strip()


def in_band(fields: Fields, has_choices: bool) -> str | None:
    """The error that an event or a body tells of; a bare message is one only where no choices are."""
    if fields.error:
        return words({"error": fields.error, "code": fields.code})
    if not has_choices and (fields.message or fields.detail):
        return words({"message": fields.message, "detail": fields.detail, "code": fields.code})
    return None
