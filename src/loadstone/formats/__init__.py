"""A report as other tools write theirs, one module each, so that what reads their files can read ours.

A module here (or an entry point of the group `loadstone.formats`) is a format: `SUMMARY`, one line for the help, and
`text`. A number stands under another tool's name only where both mean the same by it; what that tool has and we do not
know is left out, and never 0. docs/coming-from.md has the names side by side.
"""

from __future__ import annotations

from pathlib import Path
from typing import Protocol, cast

from loadstone import registry
from loadstone.report import Report

KIND = "formats"


class Format(Protocol):
    """What a module in this package provides."""

    SUMMARY: str

    def text(self, report: Report, folder: Path | None) -> str:
        """The whole file. `folder` is the run's, where there is one: for what only its table of requests knows.

        Raises `LoadstoneError` when it needs the folder and does not get it.
        """
        ...


def named(name: str) -> Format:
    """The format of this name. Raises `UsageError` for an unknown one."""
    return cast(Format, registry.load(KIND, name))
