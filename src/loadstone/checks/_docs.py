"""The documentation of all checks, as Markdown, made from their docstrings."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping
from itertools import groupby

from loadstone.checks import CHECKS, Evidence, simulated
from loadstone.report import Check


def sections(examples: Mapping[str, tuple[str, str]] = {}) -> str:
    """A chapter a module, a section a check; `examples` has what a check said of a bad run, and its advice, by name."""
    checks = [*CHECKS, simulated.stored]
    order = list(dict.fromkeys(check.__module__ for check in checks))
    checks.sort(key=lambda check: order.index(check.__module__))
    chapters = groupby(checks, key=lambda check: check.__module__)
    return "\n".join(_chapter(module, list(found), examples) for module, found in chapters)


def _chapter(
    module: str, checks: list[Callable[[Evidence], Check]], examples: Mapping[str, tuple[str, str]]
) -> str:
    title, _, text = inspect.cleandoc(sys.modules[module].__doc__ or module).partition("\n")
    parts = [f"## {title.rstrip('.')}", *([text.strip()] if text.strip() else [])]
    return "\n\n".join([*parts, *(_section(check, examples.get(check.__name__)) for check in checks)]) + "\n"


def _section(check: Callable[[Evidence], Check], example: tuple[str, str] | None) -> str:
    parts = [f"### {check.__name__}", inspect.cleandoc(check.__doc__ or "")]
    if example:
        finding, advice = example
        parts.append("\n".join([f"> {finding}", *([f">\n> *{advice}*"] if advice else [])]))
    return "\n\n".join(parts)
