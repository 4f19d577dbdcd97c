"""A file of JSON or of JSON lines, and how numbers are taken out of it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from loadstone.compare.sides import Floats, Gaps


class Damaged(Exception):
    """What is wrong with a file, in one sentence without its full stop."""


class Document(NamedTuple):
    """What a file holds."""

    values: tuple[Any, ...]
    """One of a JSON file; of JSON lines one each."""
    lines: bool

    @property
    def first(self) -> Mapping[str, Any]:
        """The first value, where it is an object; else an empty one."""
        value = self.values[0] if self.values else None
        return value if isinstance(value, Mapping) else {}

    def has(self, *keys: str) -> bool:
        """Whether the first value has all these keys."""
        return all(key in self.first for key in keys)


def number(value: Any) -> float | None:
    """A finite number; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return float(value)


def numbers(values: Any, what: str, scale: float = 1.0) -> Floats:
    """A list of numbers as an array; null becomes NaN. Raises `Damaged`."""
    if not isinstance(values, Sequence) or isinstance(values, str):
        raise Damaged(f"{what} is no list")
    found = [math.nan if (one := number(value)) is None else one for value in values]
    return np.array(found, np.float64) * scale


def pooled(lists: Any, what: str, scale: float) -> tuple[Gaps, tuple[Floats, Floats]]:
    """A list of numbers for each request: all of them, and their sums and counts by request. Raises `Damaged`."""
    if not isinstance(lists, Sequence) or isinstance(lists, str):
        raise Damaged(f"{what} is no list")
    arrays = [numbers([] if one is None else one, what, scale) for one in lists]
    counts = np.array([len(one) for one in arrays], np.int64)
    values = np.concatenate(arrays) if arrays else np.empty(0)
    owners = np.repeat(np.arange(len(arrays)), counts)
    totals = np.array([float(np.nansum(one)) for one in arrays])
    return Gaps(owners, values), (totals, counts.astype(float))
