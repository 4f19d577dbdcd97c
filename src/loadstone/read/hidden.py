"""Secrets in what a server sent back: overwritten by as many stars before anything is stored.

One rule: only what is known can be found. Decoders of a run know its secrets. After a crash nobody does, since no file
holds them; then whatever looks like a credential is overwritten, which is a guess, and says so in the docs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise

LEAST_SECRET = 6
"""Shorter ones keep nobody out, and are found in words that mean something else."""

_LOOKS = re.compile(
    rb"""\b(?:bearer|basic)\s{1,4}(?P<scheme>[\w.~+/=-]{6,4000})"""
    rb"""|\b(?:[\w-]{0,40}(?:authorization|api[-_]?key|token|secret|password))["']?\s{0,4}[:=]\s{0,4}["']?"""
    rb"""(?P<named>[\w.~+/=-]{6,4000})"""
    rb"""|\b(?P<key>(?:sk|pk|hf|key)[-_][\w-]{6,4000})""",
    re.IGNORECASE,
)

Span = tuple[int, int]


class Hidden:
    """What no file may hold. `secrets` None: unknown, so that looks have to do."""

    def __init__(self, secrets: Sequence[str] | None) -> None:
        encoded = [secret.encode("utf-8", "replace") for secret in secrets or ()]
        self._known = [secret for secret in encoded if len(secret) >= LEAST_SECRET]
        self._by_looks = secrets is None

    def __bool__(self) -> bool:
        return self._by_looks or bool(self._known)

    def spans(self, raw: bytes) -> Iterator[Span]:
        """Where they stand in `raw`, from and up to; may overlap."""
        for secret in self._known:
            at = raw.find(secret)
            while at >= 0:
                yield at, at + len(secret)
                at = raw.find(secret, at + 1)
        if self._by_looks:
            for found in _LOOKS.finditer(raw):
                yield found.span(found.lastgroup or 0)

    def raw(self, raw: bytes) -> bytes:
        """`raw`, as long as before, without them."""
        cleaned = bytearray()
        for start, stop in self.spans(raw):
            cleaned = cleaned or bytearray(raw)
            cleaned[start:stop] = b"*" * (stop - start)
        return bytes(cleaned) or raw

    def text(self, text: str) -> str:
        """`text` without them."""
        if len(text) < LEAST_SECRET or not self:
            return text
        return self.raw(text.encode("utf-8", "replace")).decode("utf-8", "replace")

    def reads(self, reads: list[bytes]) -> list[bytes]:
        """The same reads without them, wherever the reads cut them; the very same when there is none."""
        raw = b"".join(reads)
        cleaned = self.raw(raw)
        if cleaned is raw:
            return reads
        ends = [0, *accumulate(map(len, reads))]
        return [cleaned[start:end] for start, end in pairwise(ends)]


def without(reads: Sequence[bytes], secrets: Sequence[str]) -> list[bytes]:
    """The same reads, as long as before, without `secrets`."""
    return Hidden(secrets).reads(list(reads))
