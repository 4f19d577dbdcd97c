"""Named streams of randomness: one seed for the run, an independent one for every purpose.

Drawing more of one thing (arrival gaps, say) never shifts another (prompt lengths), and any position
of a stream can be had without drawing those before it.
"""

from __future__ import annotations

import hashlib
import random


def derive(seed: int, name: str) -> int:
    """The 64-bit seed of the stream `name`: the first 8 bytes of SHA-256 over seed and name."""
    digest = hashlib.sha256(f"{seed}:{name}".encode()).digest()
    return int.from_bytes(digest[:8], "little")


def stream(seed: int, name: str) -> random.Random:
    """A generator (MT19937) for a stream that is drawn from its start, in order."""
    return random.Random(derive(seed, name))
