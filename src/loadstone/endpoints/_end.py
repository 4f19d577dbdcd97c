"""How an OpenAI stream ends: by the event `[DONE]`, or by a reason that means failure."""

from __future__ import annotations

import re

from loadstone.endpoints import Reply

DONE = b"[DONE]"
FAILED = frozenset({"error", "abort"})
"""Finish reasons with which an engine says that it gave up, not that the answer is whole."""

_BEFORE = len(b"\n\ndata: ")
"""Enough to see that the line begins there: one byte more than the longest beginning."""
_DONE_LINE = re.compile(rb"(?:\A|[\r\n])data: ?\[DONE\](?:[\r\n]|\Z)")


def done(data: bytes) -> bool:
    """Whether `data` holds the event `[DONE]`; a text may hold the word as well.

    Runs on the hot path: bytes are searched for the word, which is fast, and only its surroundings for the line.
    """
    at = data.find(DONE)
    while at >= 0:
        if _DONE_LINE.search(data[max(at - _BEFORE, 0) : at + len(DONE) + 1]):
            return True
        at = data.find(DONE, at + 1)
    return False


def finish(reply: Reply, reason: str) -> None:
    """Notes why a choice ended."""
    reply.finish_reason = reason
    if reason in FAILED:
        reply.error = reply.error or f"the server finished with {reason!r}"
