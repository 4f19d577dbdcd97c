"""Finds the parts that are one file each: endpoints, sources, metrics, exporters.

A part of a kind is a module in the package of that name (`loadstone/endpoints/chat.py` is the
endpoint `chat`; a leading underscore hides a module), or an entry point of the group
`loadstone.<kind>` in any other installed package. Names are listed without importing anything.
"""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType

from loadstone.errors import UsageError, did_you_mean


@cache
def builtin(kind: str) -> tuple[str, ...]:
    """Names of the parts of `kind` that ship with loadstone, sorted; dashes for underscores."""
    folder = str(Path(__file__).parent / kind)
    found = (module.name for module in pkgutil.iter_modules([folder]))
    return tuple(sorted(name.replace("_", "-") for name in found if not name.startswith("_")))


@cache
def names(kind: str) -> tuple[str, ...]:
    """Names of all parts of `kind`: built in and from other packages, sorted."""
    foreign = (entry.name for entry in entry_points(group=f"loadstone.{kind}"))
    return tuple(sorted({*builtin(kind), *foreign}))


def load(kind: str, name: str) -> ModuleType:
    """The module of one part.

    Raises `UsageError` naming the nearest known name when there is no such part.
    """
    if name in builtin(kind):
        return importlib.import_module(f"loadstone.{kind}.{name.replace('-', '_')}")
    for entry in entry_points(group=f"loadstone.{kind}", name=name):
        module = entry.load()
        if isinstance(module, ModuleType):
            return module
        raise UsageError(f"entry point loadstone.{kind}:{name} is not a module; point it at one.")
    known = names(kind)
    advice = f"{did_you_mean(name, known)} Known: {', '.join(known)}.".lstrip()
    raise UsageError(f"{kind}: there is no {name!r}. {advice}")
