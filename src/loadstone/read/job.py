"""What main and a decoder say to each other: JSON lines, one message a line, over the decoder's stdin and stdout.

Imports neither numpy nor polars, so that main can speak to decoders without them.
"""

from __future__ import annotations

import msgspec

from loadstone.slo import Watched


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """What a decoder has to know; its first line of input."""

    folder: str
    """The run folder."""
    decoder: int
    workers: list[int]
    """Those whose recordings it follows."""
    endpoint: str
    streaming: bool
    tokenizer: str
    keep: str
    """`output.keep` of the configuration."""
    id_prefix: str
    check_tokens: str = "none"
    """`output.check_tokens` of the configuration."""
    max_response_bytes: int = 64 << 20
    """A body that is larger once it is unpacked is not unpacked further."""
    secrets: list[str] | None = []
    """What a server may have sent back that no file may hold; None when nobody knows it any more."""
    board: str | None = None
    """The board's file; None when nobody watches."""
    blocks: int = 0
    block: int = 0
    watched: list[Watched] = []
    """Objectives of which the board has the requests that are beyond them."""
    measured: list[tuple[int, int]] = []
    """Numbers of the requests that count for these: from the first on, up to the last, that left out."""


class Finish(msgspec.Struct, frozen=True, kw_only=True, tag="finish"):
    """The workers write no more: decode what is left. The end of input means the same."""


class Done(msgspec.Struct, frozen=True, kw_only=True):
    """A decoder's last word: everything is decoded and synced."""

    clock_steps: int
    """Steps of the wall clock, as the worker saw them that saw most."""
    kernel_stamps: bool
    """Every read had a stamp of the kernel that could be used."""
