"""Evidence: one raw response for every kind of fault, in `faults/`.

Kept is the beginning of what the server sent, nothing of the request. `index.jsonl` tells which file shows which fault;
a fault to which no byte came has its line there all the same. Bounded: `KINDS` lines a decoder, `SAMPLE_BYTES`
a file. Names of files are made of our own words alone.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import msgspec

from loadstone.read.outcome import kind

KINDS = 50
SAMPLE_BYTES = 64 << 10
INDEX = "index.jsonl"


class Sample(msgspec.Struct, frozen=True, kw_only=True):
    """A line of the index. `kind` is the fault with its numbers taken out."""

    outcome: str
    kind: str
    fault: str
    file: str | None
    """None: no byte of an answer came."""
    request_id: str | None
    """None: the request was never sent."""


class Evidence:
    """The samples of one decoder, beside those that are there already."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._kinds = {(sample.outcome, sample.kind) for sample in samples(folder)}
        self._left = KINDS

    def wants(self, outcome: str, fault: str) -> bool:
        """Whether a fault is the first of its kind, and there is room for it."""
        return self._left > 0 and (outcome, kind(fault)) not in self._kinds

    def keep(self, outcome: str, fault: str, request_id: str | None, raw: bytes) -> None:
        """Stores the response as the sample of its fault. A disk that is full costs the sample, and nothing else."""
        what = kind(fault)
        self._kinds.add((outcome, what))
        self._left -= 1
        with suppress(OSError):
            self._folder.mkdir(exist_ok=True)
            file = self._store(outcome, raw[:SAMPLE_BYTES]) if raw else None
            sample = Sample(outcome=outcome, kind=what, fault=fault, file=file, request_id=request_id)
            with (self._folder / INDEX).open("ab", buffering=0) as index:
                index.write(msgspec.json.encode(sample) + b"\n")

    def _store(self, outcome: str, raw: bytes) -> str:
        """Writes under the next free name; other decoders may be doing the same."""
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
    """What the index of `folder` lists; nothing when no fault was kept. A line that is torn is none."""
    index = folder / INDEX
    decode = msgspec.json.Decoder(Sample).decode
    found = []
    for line in index.read_bytes().splitlines() if index.exists() else []:
        with suppress(msgspec.DecodeError, UnicodeDecodeError):
            found.append(decode(line))
    return found
