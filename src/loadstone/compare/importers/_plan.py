"""What each request of a run was sent, from the run's plan, as a number that two runs can be held against each other by."""

from __future__ import annotations

from hashlib import blake2b
from pathlib import Path

import numpy as np

from loadstone.compare.sides import Ints
from loadstone.plan.store import read_requests


def prompts(plan: Path, rows: Ints) -> Ints | None:
    """The first 8 bytes of BLAKE2b of the body of each of these rows; None where the plan has not all of them.

    That two bodies that differ have the same is as likely as not only among 5 billion of them.
    """
    found = np.zeros(int(rows.max()) + 1 - (low := int(rows.min())), np.int64)
    there = np.zeros(len(found), np.bool_)
    try:
        for row, body in read_requests(plan, low, low + len(found)):
            found[row.request - low] = int.from_bytes(
                blake2b(body, digest_size=8).digest(), "little", signed=True
            )
            there[row.request - low] = len(body) == row.body_bytes
    except OSError:
        return None
    at = rows - low
    return found[at] if there[at].all() else None
