"""A file of JSON or of JSON lines, and how numbers are taken out of it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from loadstone.compare.sides import Floats, Gaps
from loadstone.errors import UsageError


class Damaged(Exception):
    """What is wrong with a file, in one sentence without its full stop."""


UNREADABLE = (Damaged, LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError)
"""What reading somebody else's file may end in."""
LARGEST_BYTES = 256 * 2**20
"""JSON takes about 20 times its size in memory, at worst."""


def wrong(error: Exception) -> str:
    """What such an error says about the file, in words of the file and not of Python."""
    if isinstance(error, Damaged):
        return str(error)
    if isinstance(error, KeyError):
        return f"it lacks {error.args[0]}"
    if isinstance(error, RecursionError):
        return "it is nested too deeply"
    return "a part of it is of another kind than this format has there"


def content(path: Path) -> bytes:
    """The bytes of a file of JSON. Raises `UsageError` where it cannot be read, or is larger than what is held in memory."""
    try:
        with path.open("rb") as file:
            data = file.read(LARGEST_BYTES + 1)
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}.") from None
    if len(data) > LARGEST_BYTES:
        raise UsageError(
            f"{path}: is larger than {LARGEST_BYTES // 2**20} MB, more than compare reads; save the run without its details."
        )
    return data


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
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        found = float(value)
    except OverflowError:
        return None
    return found if math.isfinite(found) else None


def measured(found: Mapping[str, Any], name: str, what: str = "") -> float | None:
    """What a summary has under this name; None for null and NaN. Raises `Damaged`, with `what` if given, for what is no number."""
    value = found.get(name)
    if value is None or value != value:
        return None
    if (known := number(value)) is None:
        raise Damaged(f"{what or name} is no finite number")
    return known


def count(found: Mapping[str, Any], name: str) -> int | None:
    """How many, of what is counted; None where it is not told. Raises `Damaged` for what counts nothing."""
    value = found.get(name)
    if value is None:
        return None
    told = number(value)
    if told is None or told < 0 or told != int(told):
        raise Damaged(f"{name} is no number of requests")
    return int(told)


def part(found: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """The object of this name, an empty one where there is none. Raises `Damaged`."""
    value = found.get(name)
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise Damaged(f"{name} is no object")
    return value


def each(found: Mapping[str, Any], name: str, count: int, like: str) -> Sequence[Any]:
    """A list with one entry for each of `count` requests, as `like` has; nulls where there is none. Raises `Damaged`."""
    values = found.get(name)
    if values is None:
        return [None] * count
    if not isinstance(values, Sequence) or isinstance(values, str):
        raise Damaged(f"{name} is no list")
    if len(values) != count:
        raise Damaged(
            f"{name} and {like} are not of one length: {name} has {len(values):,} entries and {like} {count:,}"
        )
    return values


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
