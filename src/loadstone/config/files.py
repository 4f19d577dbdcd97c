"""Files that a user names: their bytes, if they are files and not too large; a config file's nested document.

Knows formats, no keys. What is no file (a pipe, a device) is refused and not waited for, but for a pipe where the
caller says how long.
"""

from __future__ import annotations

import os
import re
import select
import stat
import time
import tomllib
from pathlib import Path
from typing import Any

from loadstone.errors import UsageError

MOST_BYTES = 256 << 10
"""Of a config file: more than any needs, and little enough for parsers that take their time."""
_TOO_DEEP = "is nested too deeply; no key needs that."
_LONG_KEY = re.compile(r"""(?<![\w"'.-])(?:(?:[\w-]+|"[^"\n]*"|'[^'\n]*')[ \t]*\.[ \t]*){65}""")
"""A dotted key so long that reading it takes the square of its length."""


def content(file: Path, most_bytes: int = MOST_BYTES, pipe_s: float = 0.0) -> bytes:
    """What a regular file holds, or a pipe whose writer is done within `pipe_s`. Raises `UsageError`."""
    try:
        descriptor = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            mode = os.fstat(descriptor).st_mode
            if stat.S_ISFIFO(mode) and pipe_s:
                found = _from_pipe(descriptor, most_bytes + 1, pipe_s)
            elif not stat.S_ISREG(mode):
                kind = "a folder" if stat.S_ISDIR(mode) else "a pipe or a device"
                raise UsageError(f"{file}: is {kind}; give a file.")
            else:
                with open(descriptor, "rb", closefd=False) as opened:
                    found = opened.read(most_bytes + 1)
        finally:
            os.close(descriptor)
    except TimeoutError:
        raise UsageError(f"{file}: is a pipe whose writer is not done within {pipe_s:g} s.") from None
    except OSError as error:
        raise UsageError(f"{file}: cannot be read: {error.strerror}.") from None
    if len(found) > most_bytes:
        raise UsageError(f"{file}: is larger than {most_bytes >> 10} KiB; is it the right file?")
    return found


def _from_pipe(descriptor: int, most_bytes: int, limit_s: float) -> bytes:
    """What a pipe, opened without waiting, holds until its writer closes it. Raises `TimeoutError`.

    Before a writer has come, a read finds an end that means nothing.
    """
    deadline = time.monotonic() + limit_s
    writer = select.poll()
    writer.register(descriptor, select.POLLIN)
    found, come = b"", False
    while len(found) < most_bytes:
        try:
            piece = os.read(descriptor, most_bytes - len(found))
        except BlockingIOError:
            piece = None
        if piece:
            found += piece
        elif piece is not None and (found or come):
            break
        else:
            left_s = deadline - time.monotonic()
            if left_s <= 0 or not writer.poll(left_s * 1000):
                raise TimeoutError
            come = True
    return found


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
        return content(file).decode("utf-8").replace("\r\n", "\n")
    except UnicodeDecodeError:
        raise UsageError(f"{file}: is not UTF-8 text; save it as such.") from None


def _toml(file: Path) -> Any:
    text = _text(file)
    if _LONG_KEY.search(text):
        raise UsageError(f"{file}: {_TOO_DEEP}")
    try:
        return tomllib.loads(text)
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
    except yaml.YAMLError as error:
        raise UsageError(f"{file}: not valid YAML: {error}.") from None
    except ValueError:  # its words show the value, which may be a key
        raise UsageError(f"{file}: not valid YAML: a value is not of its form.") from None
    except RecursionError:
        raise UsageError(f"{file}: {_TOO_DEEP}") from None
    return {} if found is None else found


def _where(mark: Any) -> str:
    """The place, without its text: that may hold a key."""
    return f" (at line {mark.line + 1}, column {mark.column + 1})" if mark else ""
