"""What main and the reader of the servers' pages say to each other: JSON lines over its stdin and stdout.

A request may hold a key, so it exists in memory and in a pipe only. Imports neither numpy nor polars.
"""

from __future__ import annotations

from typing import Any

import msgspec

from loadstone.folder import ScrapeLog
from loadstone.load.job import TlsJob


class PageJob(msgspec.Struct, frozen=True, kw_only=True):
    """One page to read, again and again."""

    name: str
    """Its address without secrets."""
    serves: tuple[int, ...]
    """Which of `endpoint.urls` it tells of; empty: it was asked for by its own address."""
    request: bytes
    """A whole request, the same every time."""
    addresses: list[tuple[int, tuple[Any, ...]]] = []
    """(family, address) of the server, or of the proxy that leads to it; empty: `host` is to be looked up."""
    host: str = ""
    port: int = 0
    tls: TlsJob | None = None
    tunnel: bytes = b""
    """What to say to a proxy before TLS; empty without a tunnel."""
    hidden: list[str] = []
    """What a server may have sent back that nobody may be told."""


class Job(msgspec.Struct, frozen=True, kw_only=True, tag="job"):
    """All that the reader has to know, sent once; it begins to read at once."""

    folder: str
    """The run folder."""
    interval_s: float
    pages: list[PageJob]
    keep_s: float = 60.0
    """What was read is stored this often, or more seldom where that would cost much; the first time so long after the
    first `Look`."""


class Look(msgspec.Struct, frozen=True, kw_only=True, tag="look"):
    """Read every page now, and say so when those that can be read have been."""

    number: int


class Finish(msgspec.Struct, frozen=True, kw_only=True, tag="finish"):
    """Read every page once more, store what was read, and exit. At the end of input it is only stored."""


class Looked(msgspec.Struct, frozen=True, kw_only=True, tag="looked"):
    """The pages have been read that were asked for by this number and those before it."""

    number: int


class Done(msgspec.Struct, frozen=True, kw_only=True, tag="done"):
    """The last word: what was read is on the disk."""

    logs: list[ScrapeLog]


Order = Job | Look | Finish
Word = Looked | Done
