"""The ways in which software writes a text down, so that a secret is found however a server echoes it. Pure."""

from __future__ import annotations

import json
from binascii import b2a_base64
from collections.abc import Iterator
from urllib.parse import quote

_IN_JSON = [{ord(char): f"\\u{ord(char):04x}" for char in more} for more in ("", "&<>", "&<>='")]
"""What encoders escape that need not be escaped."""
_IN_HTML = {ord("&"): "&amp;", ord("<"): "&lt;", ord(">"): "&gt;", ord('"'): "&quot;", ord("'"): "&#x27;"}
_LEAST_BASE64 = 6
"""Of shorter texts base64 leaves too little that is theirs alone."""


def spellings(text: str) -> set[str]:
    """`text` as it is, in JSON, in addresses, in HTML, and inside base64."""
    return {text, *_json(text), *_percent(text), text.translate(_IN_HTML), *_base64(text)}


def _json(text: str) -> Iterator[str]:
    for ascii_only in (False, True):
        plain = json.dumps(text, ensure_ascii=ascii_only)[1:-1]
        for escaped in map(plain.translate, _IN_JSON):
            yield from (escaped, escaped.replace("/", "\\/"))


def _percent(text: str) -> Iterator[str]:
    for safe in ("", "/", "!$&'()*+,;=:@/"):
        coded = quote(text, safe, errors="replace")
        yield coded
        yield coded.replace("%20", "+")
        yield "%".join(
            piece[:2].lower() + piece[2:] if at else piece for at, piece in enumerate(coded.split("%"))
        )


def _base64(text: str) -> Iterator[str]:
    """The digits that depend on nothing but `text`, wherever in the bytes that were encoded it begins."""
    raw = text.encode("utf-8", "replace")
    if len(raw) < _LEAST_BASE64:
        return
    for shift in range(3):
        digits = b2a_base64(bytes(shift) + raw, newline=False).decode()
        core = digits[-(-shift * 8 // 6) : (shift + len(raw)) * 8 // 6]
        yield core
        yield core.replace("+", "-").replace("/", "_")
