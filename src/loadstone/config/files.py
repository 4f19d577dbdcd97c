"""A config file's text as a nested document. Knows formats, no keys."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from loadstone.errors import UsageError


def document(file: Path) -> dict[Any, Any]:
    """What a TOML or YAML file holds; the suffix tells which. Raises `UsageError`."""
    match file.suffix.lower():
        case ".toml":
            found = _toml(file)
        case ".yaml" | ".yml" | ".json":
            found = _yaml(file)
        case _:
            raise UsageError(f"{file}: name it .toml or .yaml, so that its format is known.")
    if not isinstance(found, dict):
        raise UsageError(f"{file}: must be a table of sections such as endpoint and load.")
    return found


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{file}: cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise UsageError(f"{file}: is not UTF-8 text; save it as such.") from None


def _toml(file: Path) -> Any:
    try:
        return tomllib.loads(_text(file))
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{file}: not valid TOML: {error}.") from None


def _yaml(file: Path) -> Any:
    import yaml  # costs 15 ms; most runs have no YAML

    try:
        found = yaml.safe_load(_text(file))
    except yaml.YAMLError as error:
        raise UsageError(f"{file}: not valid YAML: {error}.") from None
    return {} if found is None else found
