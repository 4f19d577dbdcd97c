"""A config file's text as a nested document. Knows formats, no keys."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from loadstone.errors import UsageError

_TOO_DEEP = "is nested too deeply; no key needs that."


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
    except ValueError as error:  # a number with thousands of digits raises no TOMLDecodeError
        raise UsageError(f"{file}: not valid TOML: {error}.") from None
    except RecursionError:
        raise UsageError(f"{file}: {_TOO_DEEP}") from None


def _yaml(file: Path) -> Any:
    import yaml  # costs 15 ms; most runs have no YAML

    class Loader(yaml.SafeLoader):
        """Safe; and what is written is what is read, once."""

        def compose_node(self, parent: Any, index: Any) -> Any:
            """No aliases: a few lines of them can mean gigabytes, or themselves."""
            if self.check_event(yaml.AliasEvent):
                mark = self.peek_event().start_mark  # type: ignore[no-untyped-call]
                raise yaml.MarkedYAMLError(problem="holds an alias; write the value out", problem_mark=mark)
            return super().compose_node(parent, index)

        def construct_mapping(self, node: Any, deep: bool = False) -> Any:
            """No key twice: the first would be ignored."""
            found = super().construct_mapping(node, deep)
            if len(found) < len(node.value):
                raise yaml.MarkedYAMLError(
                    problem="a key is given twice in one table", problem_mark=node.start_mark
                )
            return found

    try:
        found = yaml.load(_text(file), Loader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise UsageError(f"{file}: not valid YAML: {error.problem}{_where(mark)}.") from None
    except (yaml.YAMLError, ValueError) as error:
        raise UsageError(f"{file}: not valid YAML: {error}.") from None
    except RecursionError:
        raise UsageError(f"{file}: {_TOO_DEEP}") from None
    return {} if found is None else found


def _where(mark: Any) -> str:
    """The place, without its text: that may hold a key."""
    return f" (at line {mark.line + 1}, column {mark.column + 1})" if mark else ""
