"""Output files, one module each: a report and its run folder in, one file out.

A module here (or an entry point of the group `loadstone.export`) is an exporter. What it has to carry is
`Exporter` below. An exporter sees the report tree and the run's folder, never sockets or the running load.
Each file is written whole or not at all, so an earlier one survives a full disk.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Protocol

import msgspec

from loadstone.registry import load, names
from loadstone.report import Report


class Exporter(Protocol):
    """What a module in this package provides."""

    ROLE: str
    """What the file is for, in one word; its key in `report.run.files`. Unique among exporters."""
    FILE: str
    """The file's name in the run folder."""

    def wanted(self, report: Report) -> bool:
        """Whether this run's configuration asks for the file."""
        ...

    def write(self, report: Report, folder: Path) -> None:
        """Writes `folder / FILE`. Raises `OSError` when it cannot."""
        ...


def exporters(report: Report) -> list[Exporter]:
    """The exporters that `report`'s run wants, by name."""
    found: list[Exporter] = [load("export", name) for name in names("export")]
    return [exporter for exporter in found if exporter.wanted(report)]


def write_all(report: Report, folder: Path) -> Report:
    """Writes every output of `report` into its run folder; returns it with them added to `run.files`.

    The list is made before anything is written, so that `report.json` holds it too.
    Raises `OSError` when a file cannot be written.
    """
    chosen = exporters(report)
    files = {exporter.ROLE: exporter.FILE for exporter in chosen} | report.run.files
    listed = msgspec.structs.replace(report, run=msgspec.structs.replace(report.run, files=files))
    for exporter in chosen:
        exporter.write(listed, folder)
    return listed


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """A file to write that takes the place of `path` when the block ends well, and vanishes when it does not."""
    draft = path.with_name(path.name + ".new")
    try:
        with draft.open("wb") as file:
            yield file
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
