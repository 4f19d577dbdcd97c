"""`study.json`: what several runs say together, as one versioned tree."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec

from loadstone.errors import UsageError
from loadstone.report import SloVerdict
from loadstone.study.aggregate import SCHEMA_VERSION, MetricSpread, RunLine

FILE = "study.json"
NAME = re.compile(r"(run|a|b)-[0-9]{1,4}")
"""Folders of runs bear these names, and no others are ever written to or cleared."""
SUMMARY = "summary.txt"


class Study(msgspec.Struct, frozen=True, kw_only=True):
    """Several runs as one. `sides`: metrics by side, over those of its runs that count (`RunLine.fault` is null)."""

    schema_version: str = SCHEMA_VERSION
    command: str
    started: str
    """RFC 3339, UTC."""
    seed: int
    """Of the first run."""
    asked: int
    """Runs that were to be done, of all sides together."""
    ended_early: str | None = None
    """What was known well enough to do no more of them; null: that was not why it ended."""
    targets: dict[str, str] = {}
    """The server of each side, by its address without secrets."""
    runs: tuple[RunLine, ...]
    sides: dict[str, dict[str, MetricSpread]]
    slo: dict[str, tuple[SloVerdict, ...]] = {}
    """Verdicts on the objectives (`--slo`), by side, over the same runs."""


def read(home: Path) -> Study:
    """The study in a folder. Raises `UsageError` when it cannot be read."""
    try:
        found = msgspec.json.decode((home / FILE).read_bytes(), type=Study)
    except (OSError, msgspec.DecodeError) as error:
        raise UsageError(f"{home / FILE} is damaged or missing: {error}.") from None
    for line in found.runs:
        if not NAME.fullmatch(line.name):
            raise UsageError(f"{home / FILE} is damaged: {line.name!r} is no name of a run.")
        if (home / line.name).is_symlink():
            raise UsageError(f"{home / line.name} is a link, and no run of this study; take it away.")
    return found


def write(home: Path, told: Study, summary: str) -> None:
    """Writes `study.json` and the summary."""
    keep(home / FILE, encoded(told))
    keep(home / SUMMARY, f"{summary}\n")


def encoded(told: Study) -> str:
    """`study.json` as text."""
    return msgspec.json.format(msgspec.json.encode(told), indent=2).decode() + "\n"


def keep(path: Path, text: str) -> None:
    """Writes a file whole or not at all."""
    draft = path.with_name(f"{path.name}.new")
    draft.write_text(text, encoding="utf-8")
    draft.replace(path)
