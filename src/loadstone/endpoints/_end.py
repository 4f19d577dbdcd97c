"""How an OpenAI stream ends: by the event `[DONE]`, or by a reason that means failure."""

from __future__ import annotations

import re

from loadstone.endpoints import Reply

DONE = b"[DONE]"
FAILED = frozenset({"error", "abort"})
"""Finish reasons with which an engine says that it gave up, not that the answer is whole."""

_DONE_LINE = re.compile(rb"(?:\A|[\r\n])data: ?\[DONE\](?:[\r\n]|\Z)")


def done(data: bytes) -> bool:
    """Whether `data` holds the event `[DONE]`. The cheap look comes first; it is right nearly always."""
    return DONE in data and _DONE_LINE.search(data) is not None


def finish(reply: Reply, reason: str) -> None:
    """Notes why a choice ended."""
    reply.finish_reason = reason
    if reason in FAILED:
        reply.error = reply.error or f"the server finished with {reason!r}"
