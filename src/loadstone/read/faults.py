"""Evidence: one raw response for every kind of fault, in `faults/`.

Kept are the bytes that the server sent, nothing of the request; a secret that the server echoed is overwritten first
(`without`). `index.jsonl` tells which file shows which fault. Bounded: `KINDS` files a decoder, `SAMPLE_BYTES` each.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise
from pathlib import Path

import msgspec

from loadstone.read.outcome import kind

KINDS = 50
SAMPLE_BYTES = 64 << 10
INDEX = "index.jsonl"
LEAST_SECRET = 6
"""Shorter ones keep nobody out, and are found in words that mean something else."""


def without(reads: Sequence[bytes], secrets: Sequence[str]) -> list[bytes]:
    """The same reads, as long as before, with every one of `secrets` in them overwritten by stars."""
    raw = b"".join(reads)
    for secret in secrets:
        hidden = secret.encode("utf-8", "replace")
        if len(hidden) >= LEAST_SECRET:
            raw = raw.replace(hidden, b"*" * len(hidden))
    ends = [0, *accumulate(map(len, reads))]
    return [raw[start:end] for start, end in pairwise(ends)]


class Sample(msgspec.Struct, frozen=True, kw_only=True):
    """A line of the index. `kind` is the fault with its numbers taken out."""

    outcome: str
    kind: str
    fault: str
    file: str
    request_id: str


class Evidence:
    """The samples of one decoder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._kinds: set[tuple[str, str]] = set()

    def keep(self, outcome: str, fault: str, request_id: str, reads: list[bytes]) -> None:
        """Stores the response as a sample of its fault, if it is the first of its kind and there is one."""
        what = (outcome, kind(fault))
        if not reads or what in self._kinds or len(self._kinds) >= KINDS:
            return
        self._kinds.add(what)
        file = self._store(outcome, b"".join(reads)[:SAMPLE_BYTES])
        sample = Sample(outcome=outcome, kind=what[1], fault=fault, file=file, request_id=request_id)
        with (self._folder / INDEX).open("ab", buffering=0) as index:
            index.write(msgspec.json.encode(sample) + b"\n")

    def _store(self, outcome: str, raw: bytes) -> str:
        """Writes under the next free name; other decoders may be doing the same."""
        self._folder.mkdir(exist_ok=True)
        number = 1
        while True:
            name = f"{outcome}-{number}.http"
            try:
                with (self._folder / name).open("xb") as file:
                    file.write(raw)
                return name
            except FileExistsError:
                number += 1


def samples(folder: Path) -> list[Sample]:
    """What the index of `folder` lists; nothing when no fault was kept."""
    index = folder / INDEX
    lines = index.read_bytes() if index.exists() else b""
    return msgspec.json.Decoder(Sample).decode_lines(lines)
