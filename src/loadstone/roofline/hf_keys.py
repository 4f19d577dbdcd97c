"""A model's `config.json` as something to ask for sizes. Knows no family and no key.

One rule: a size that is missing or absurd is refused by the name of its key.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from loadstone.errors import UsageError

LARGEST = 1 << 24
"""No size of a model is above it; a longest context may be."""


class Config:
    """A `config.json` that is asked for sizes by all the names they have."""

    def __init__(self, config: Mapping[str, Any], name: str) -> None:
        self.config = config
        self.name = name
        self.family = str(config.get("model_type", "")).lower()

    def wrong(self, key: str, what: str, advice: str = "Correct the file.") -> UsageError:
        """The refusal of one key."""
        return UsageError(f"config.json of {self.name}: {key} {what}. {advice}")

    def first(self, keys: tuple[str, ...]) -> tuple[str, Any]:
        """The first of these keys that has a value, and the value; else the first key and None."""
        return next(
            ((key, self.config[key]) for key in keys if self.config.get(key) is not None), (keys[0], None)
        )

    def size(self, *keys: str, least: int = 1, most: int = LARGEST) -> int | None:
        """A size by any of its names; None where there is none. UsageError: it is no whole number, or absurd."""
        key, value = self.first(keys)
        if value is None:
            return None
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
            raise self.wrong(key, f"is {value!r}, which is not a whole number from {least} to {most}")
        return value

    def flag(self, key: str, default: bool) -> bool:
        """Whether something is so; `default` where nothing is said of it."""
        value = self.config.get(key)
        return default if value is None else bool(value)

    def needed(self, *keys: str, most: int = LARGEST) -> int:
        """A size that there must be."""
        size = self.size(*keys, most=most)
        if size is None:
            others = f" (or {', '.join(keys[1:])})" if keys[1:] else ""
            raise self.wrong(keys[0], f"is missing{others}", "Add it to the file.")
        return size
