"""Two servers that were run in turn, side by side: what differs between them, by how much that changes from pair to pair.

A-n and B-n followed each other with the same requests, so what drifts slowly meets both alike, and their ratio does not have it.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from loadstone import compare
from loadstone.study.document import Study

COMPARE = "compare.json"


def compared(told: Study, home: Path) -> compare.Comparison | None:
    """B against A, over the pairs of runs of which both count; None where there is none, or one server."""
    pairs = _pairs(told)
    if not pairs:
        return None
    sides = [",".join(str(home / pair[side]) for pair in pairs) for side in (0, 1)]
    return compare.report(compare.sides(sides), pair=len(pairs) > 1 or None, anyway=True)


def _pairs(told: Study) -> list[tuple[str, str]]:
    """The names of a-n and b-n for every n where both count."""
    good = {line.name for line in told.runs if line.fault is None}
    numbers = [name.removeprefix("a-") for name in good if name.startswith("a-")]
    return [(f"a-{n}", f"b-{n}") for n in sorted(numbers, key=int) if f"b-{n}" in good]


def encoded(found: compare.Comparison) -> str:
    """`compare.json` as text."""
    return msgspec.json.format(msgspec.json.encode(found), indent=2).decode() + "\n"
