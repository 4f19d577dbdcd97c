"""A rule about one setting, and the sentence that refuses a setting which breaks it. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from loadstone.errors import UsageError


class Rule(NamedTuple):
    """A sentence about the setting `name`, and whether this configuration deserves it."""

    name: str
    broken: bool
    why: str


def refused(path: str, why: str, value: Any = None) -> UsageError:
    """`load.grace_s = 3: has no effect ...`; a secret is not shown: give None for its value."""
    return UsageError(f"{path}: {why}" if value is None else f"{path} = {as_typed(value)}: {why}")


def as_typed(value: Any) -> str:
    """A value as one would type it after its flag: `3,1`, `0:1,60:20`, `request_latency:2`, `true`."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Mapping):
        return " ".join(f"{name}:{as_typed(item)}" for name, item in value.items())
    if isinstance(value, tuple | list):
        return ",".join(
            ":".join(map(as_typed, item)) if isinstance(item, tuple | list) else as_typed(item)
            for item in value
        )
    return f"{value:g}" if isinstance(value, float) else str(value)
