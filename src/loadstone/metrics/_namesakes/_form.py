"""The form of a fact about another tool's metric."""

from __future__ import annotations

from typing import NamedTuple


class Namesake(NamedTuple):
    """One metric of another tool."""

    ours: str
    """The metric of ours that measures the same, or bears the same name."""
    tool: str
    name: str
    """As its results call it; several are separated by spaces."""
    how: str
    """How it is computed there."""
    differs: str = ""
    """Why its number is another one than ours; empty: by nothing but the tool's clock and its count of tokens."""

    @property
    def names(self) -> tuple[str, ...]:
        """Each of its names."""
        return tuple(self.name.split())
