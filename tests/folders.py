"""The folder of a run, read as its user reads it."""

from __future__ import annotations

import json
from functools import cached_property
from pathlib import Path

import msgspec
import polars as pl

from loadstone import folder as layout
from loadstone.report import Report


class Folder:
    """What a run has left."""

    def __init__(self, path):
        self.path = Path(path)

    @cached_property
    def report(self):
        """`report.json`, held to its published form."""
        return msgspec.json.decode((self.path / "report.json").read_bytes(), type=Report)

    @cached_property
    def log(self):
        return layout.read_run(self.path)

    @cached_property
    def table(self):
        """`requests.parquet`, warm-up included."""
        return pl.read_parquet(self.path / "requests.parquet")

    @cached_property
    def bodies(self):
        """All bodies of `inputs.json` in the order of the plan."""
        sessions = json.loads((self.path / "inputs.json").read_text())["data"]
        return [body for session in sessions for body in session["payloads"]]
