"""From a file, flags and `--set` to one checked `Config`: flags over file over defaults.

One rule: every layer becomes the same thing, a flat `{path: value}`, before anything is looked at. Tables
(`endpoint.extra_inputs`) are merged name by name; everything else is replaced as a whole. Every
fault is a `UsageError` that names the key, what it must be, and what to do.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from loadstone.config.check import check
from loadstone.config.convert import converted, from_texts, read, spelt
from loadstone.config.files import document
from loadstone.config.options import Option, by_path, nearest
from loadstone.config.secrets import MASK
from loadstone.config.tree import Config
from loadstone.errors import UsageError

Layer = dict[str, Any]
T = TypeVar("T", bound=msgspec.Struct)

KEY_VARIABLE = "LOADSTONE_API_KEY"


def load(
    file: Path | None = None,
    flags: Mapping[str, Any] | None = None,
    sets: Sequence[str] = (),
    environ: Mapping[str, str] = os.environ,
) -> Config:
    """The configuration that a command line means.

    `flags` has, by path, the texts given for each flag (a bool for a switch); `sets` are `a.b=value`.
    The key in `LOADSTONE_API_KEY` goes over the file's and under the flag's. Raises `UsageError`.
    """
    given = _together(_from_flags(flags or {}), _from_sets(sets))
    stored = _flat(document(file), f"{file}: ") if file else {}
    merged: Layer = {}
    for layer in (stored, _from_environment(environ), given):
        for path, value in layer.items():
            merged[path] = _over(merged.get(path), value)
    _refuse_masks(merged)
    return check(_config(merged))


def _refuse_masks(merged: Layer) -> None:
    """A file or command that loadstone wrote has `***` where secrets were; they must not be sent."""
    for path in ("endpoint.api_key", "endpoint.headers", "endpoint.url"):
        if MASK in str(merged.get(path)):
            raise UsageError(
                f"{path}: holds {MASK}, where loadstone left out a secret; put it in again "
                f"(an API key best as {KEY_VARIABLE})."
            )


def _over(below: Any, above: Any) -> Any:
    return {**below, **above} if isinstance(below, dict) and isinstance(above, dict) else above


def _together(flags: Layer, sets: Layer) -> Layer:
    """Both at once, which must not contradict each other."""
    for path in flags.keys() & sets.keys():
        if not isinstance(flags[path], dict):
            raise UsageError(f"{path} is given by its flag and by --set; give it once.")
    return {**sets, **{path: _over(sets.get(path), value) for path, value in flags.items()}}


def _from_environment(environ: Mapping[str, str]) -> Layer:
    key = environ.get(KEY_VARIABLE)
    return {"endpoint.api_key": key} if key else {}


def _from_flags(flags: Mapping[str, Any]) -> Layer:
    return {path: from_texts(by_path()[path], given) for path, given in flags.items()}


def _from_sets(sets: Sequence[str]) -> Layer:
    layer: Layer = {}
    for text in sets:
        key, equals, value = text.partition("=")
        if not equals or not key.strip():
            raise UsageError(f"--set {key}: must be KEY=VALUE, such as load.concurrency=8.")
        layer = _together(layer, _flat(_nested(key.strip(), value), "--set "))
    return layer


def _nested(key: str, text: str) -> dict[str, Any]:
    option = by_path().get(key)
    value = spelt(key, text)
    if option and option.kind == "text" and not isinstance(value, str | None):
        value = text
    for name in reversed(key.split(".")):
        value = {name: value}
    return dict(value)


def _flat(document: Mapping[Any, Any], where: str, prefix: str = "") -> Layer:
    """A nested document as `{path: value}`; `where` begins the sentence about a key that is not known."""
    layer: Layer = {}
    for name, value in document.items():
        path = f"{prefix}{name}"
        if path in by_path():
            layer[path] = _table(by_path()[path], value)
        elif isinstance(value, dict) and any(known.startswith(f"{path}.") for known in by_path()):
            layer.update(_flat(value, where, f"{path}."))
        else:
            raise UsageError(_unknown(path, where))
    return layer


def _table(option: Option, value: Any) -> Any:
    """A table may also be written as its flag has it: `goodput = "time_to_first_token:200"`."""
    return read(option, [value]) if option.read and isinstance(value, str) else value


def _unknown(path: str, where: str) -> str:
    if any(known.startswith(f"{path}.") for known in by_path()):
        return f"{where}{path}: is a section; it must hold keys, not one value."
    near = nearest(path)
    advice = f"Did you mean {near}?" if near else "docs/configuration.md lists all keys."
    return f"{where}{path}: there is no such key. {advice}"


def from_flags(struct: type[T], known: Sequence[Option], flags: Mapping[str, Any]) -> T:
    """A flat struct, such as the engine's options, from the texts of its flags. Raises `UsageError`."""
    given = [option for option in known if option.path in flags]
    return struct(**{one.path: converted(one, from_texts(one, flags[one.path])) for one in given})


def _config(merged: Layer) -> Config:
    tree: dict[str, dict[str, Any]] = {}
    for path, value in merged.items():
        section, _, name = path.partition(".")
        tree.setdefault(section, {})[name] = converted(by_path()[path], value)
    return msgspec.convert(tree, Config)
