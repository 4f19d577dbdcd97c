"""The ground a measurement stands on: where it may write, which repeat it is, and whether it is the short form."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple


class Ground(NamedTuple):
    """Handed to every measurement. Measurements with an equal ground may share runs."""

    folder: Path
    repeat: int
    short: bool

    def path(self, name: str) -> Path:
        """A path of this repeat's own."""
        return self.folder / f"{name}-{self.repeat}"


class Unmeasured(Exception):
    """Something that this measurement needs is not on the machine."""
