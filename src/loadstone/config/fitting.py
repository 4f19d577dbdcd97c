"""One shape of load, from the keys of [load] and a phase's own over them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from loadstone.config.check_load import impossible, without_effect
from loadstone.config.options import by_path
from loadstone.config.rules import Rule, refused
from loadstone.config.tree import LoadConfig

_DEFAULTS = LoadConfig()
WHOLE_RUN = ("phases", "workers", "failed_request_threshold")
"""Leaves of [load] that are no phase's."""
NAMED = tuple(name for name in LoadConfig.__struct_fields__ if name.startswith(("warmup_", "cooldown_")))
"""Those that are one phase's own, by their name."""
SHAPE = tuple(name for name in LoadConfig.__struct_fields__ if name not in (*WHOLE_RUN, *NAMED))
"""Those that a phase may have of its own."""


def fitting(
    base: LoadConfig, own: Mapping[str, Any], where: str, phase: str, spoken: Mapping[str, str]
) -> LoadConfig:
    """`base` with `own` over it, without what of `base` does nothing then. Raises `UsageError`.

    `where` begins the place of an own key in a sentence; `spoken` has what a user calls each key there.
    """
    load = msgspec.structs.replace(base, **own)
    while idle := _broken(without_effect(load), load):
        inherited = [rule.name for rule in idle if rule.name not in own]
        if not inherited:
            raise refused(where + idle[0].name, idle[0].why.format_map(spoken), getattr(load, idle[0].name))
        load = without(load, inherited[0])
    for name, _, why in _broken(impossible(load), load):
        told = why.format_map(spoken)
        if name in own:
            raise refused(where + name, told, getattr(load, name))
        raise refused(f"load.{name}", f"in phase {phase}: {told}", getattr(load, name))
    return load


def flags(prefix: str) -> dict[str, str]:
    """The flag of every key of a shape; where there is one of the phase that `prefix` names, that."""
    known = by_path()
    paths = ((name, f"load.{prefix}{name}") for name in SHAPE)
    return {name: known[path if path in known else f"load.{name}"].flags[0] for name, path in paths}


def given(load: LoadConfig, name: str) -> bool:
    """Whether a leaf asks for anything: whether it is not its default."""
    return bool(getattr(load, name) != getattr(_DEFAULTS, name))


def without(load: LoadConfig, *names: str) -> LoadConfig:
    """The same load with these leaves at their defaults."""
    return msgspec.structs.replace(load, **{name: getattr(_DEFAULTS, name) for name in names})


def _broken(rules: Iterable[Rule], load: LoadConfig) -> list[Rule]:
    """The rules that are broken; a value that equals its default asks for nothing and breaks none."""
    return [rule for rule in rules if rule.broken and given(load, rule.name)]
