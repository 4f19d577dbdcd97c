"""Keeps word tables between runs, by the digest of the vocabulary they were found in.

One rule: the cache can only save time. A file that is missing, broken or of another form counts as
not there, and a folder that cannot be written to is left alone.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import msgspec

from loadstone.tokens.words import Words

FORM = 1
"""Counted up when the way words are found or stored changes."""


def folder() -> Path | None:
    """`$XDG_CACHE_HOME/loadstone`, else `~/.cache/loadstone`; None for a user without a home."""
    try:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    except RuntimeError:
        return None
    return base / "loadstone" if base.is_absolute() else None


def recall(digest: str) -> Words | None:
    """The table kept for `digest`, if there is a whole one."""
    if (home := folder()) is None:
        return None
    try:
        return msgspec.json.decode((home / _name(digest)).read_bytes(), type=Words)
    except (OSError, msgspec.MsgspecError):
        return None


def keep(digest: str, words: Words) -> None:
    """Stores the table; whoever reads meanwhile sees all of it or nothing."""
    if (home := folder()) is None:
        return
    try:
        home.mkdir(parents=True, exist_ok=True)
        descriptor, partial = tempfile.mkstemp(dir=home, prefix=".words-")
    except OSError:
        return
    try:
        with open(descriptor, "wb") as file:
            file.write(msgspec.json.encode(words))
        Path(partial).replace(home / _name(digest))
    except OSError:
        Path(partial).unlink(missing_ok=True)


def _name(digest: str) -> str:
    return f"words-{FORM}-{digest}.json"
