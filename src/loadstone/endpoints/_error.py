"""The server's own words, found in an error of whatever shape.

Known shapes: `{"error": {"message", "code"}}`, `{"error": "text"}`, `{"object": "error", "message", "code"}`,
`{"message", "code"}`, `{"detail": ...}` (FastAPI), plain text.
"""

from __future__ import annotations

from typing import Any

import msgspec


class Fields(msgspec.Struct, gc=False):
    """The fields by which an event or a body tells of an error; an endpoint's types begin with them."""

    error: Any = None
    message: Any = None
    code: Any = None
    detail: Any = None


def words(value: Any) -> str:
    """The message in `value`, with its code behind it when it has one."""
    if isinstance(value, dict):
        return _of_object(value)
    if isinstance(value, str):
        return value.strip()
    return msgspec.json.encode(value).decode()


def _of_object(value: dict[str, Any]) -> str:
    for key in ("error", "message", "detail", "msg"):
        if value.get(key):
            text, code = words(value[key]), value.get("code")
            told = code is None or code == "" or f"({code})" in text
            return text if told else f"{text} ({code})"
    return msgspec.json.encode(value).decode()


def of_text(data: bytes) -> str:
    """The message in the data of an error event, or in the body of an error response."""
    try:
        return words(msgspec.json.decode(data))
    except (msgspec.DecodeError, UnicodeDecodeError):
        return data.decode("utf-8", "replace").strip()


def in_band(fields: Fields, has_choices: bool) -> str | None:
    """The error that an event or a body tells of; a bare message is one only where no choices are."""
    if fields.error:
        return words({"error": fields.error, "code": fields.code})
    if not has_choices and (fields.message or fields.detail):
        return words({"message": fields.message, "detail": fields.detail, "code": fields.code})
    return None
