"""The runs that a study's folder stands for where runs are named, such as on a side of a comparison."""

from __future__ import annotations

from pathlib import Path

from loadstone.errors import UsageError
from loadstone.study import document


def runs_of(path: Path) -> list[Path]:
    """The folders of the runs that count (`RunLine.fault` is null); of anything but a study the path itself.

    Raises `UsageError` for a study of two servers, which is two sides, and for one of which no run counts.
    """
    try:
        if not (path / document.FILE).is_file():
            return [path]
    except (OSError, ValueError):  # a name that no file can have; reading it says so
        return [path]
    found = document.read(path)
    counted = {line.side: [one for one in found.runs if one.side == line.side] for line in found.runs}
    if len(counted) > 1:
        sides = " ".join(
            ",".join(str(path / one.name) for one in lines if one.fault is None) for lines in counted.values()
        )
        raise UsageError(
            f"{path}: holds the runs of {len(counted)} servers, which are as many sides; name its runs:"
            f" loadstone compare {sides}"
        )
    runs = [path / line.name for line in found.runs if line.fault is None]
    if not runs:
        raise UsageError(
            f"{path}: no run of this study counts, so it cannot be compared; see its {document.SUMMARY}."
        )
    return runs
