"""Two servers that were run in turn, side by side: what differs between them, by how their runs differ from each other."""

from __future__ import annotations

from pathlib import Path

import msgspec

from loadstone import compare
from loadstone.study.document import Study

FILE = "compare.json"
SIDES = ("a", "b")


def compared(told: Study, home: Path) -> compare.Comparison | None:
    """B against A, over the runs that count; None where a side has none, or where there are no two sides."""
    runs = {
        side: [str(home / line.name) for line in told.runs if line.side == side and line.fault is None]
        for side in SIDES
    }
    if not all(runs.values()):
        return None
    return compare.report(compare.sides([",".join(runs[side]) for side in SIDES]), anyway=True)


def rendered(found: compare.Comparison, home: Path, *, width: int, color: bool) -> str:
    """The comparison as text; it is kept in `compare.json` as well."""
    from loadstone.compare import page

    draft = home / f"{FILE}.new"
    draft.write_bytes(msgspec.json.format(msgspec.json.encode(found), indent=2) + b"\n")
    draft.replace(home / FILE)
    return page.render(found, width=width, color=color)
