"""From a file, flags and `--set` to one checked `Config`: flags over file over defaults.

One rule: every layer becomes the same thing, a flat `{path: value}`, before anything is looked at. Tables
(`endpoint.extra_inputs`) are merged name by name; everything else is replaced as a whole. Every
fault is a `UsageError` that names the key, what it must be, and what to do.
"""

from __future__ import annotations

import difflib
import os
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from loadstone.config import values
from loadstone.config.check import check
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
    layers = [_from_file(file) if file else {}, _from_environment(environ), given]
    merged: Layer = {}
    for layer in layers:
        for path, value in layer.items():
            merged[path] = _over(merged.get(path), value)
    return check(_config(merged))


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
    return {path: _flag_value(by_path()[path], given) for path, given in flags.items()}


def _flag_value(option: Option, given: Any) -> Any:
    if isinstance(given, bool):
        return given
    if option.kind in ("list", "table"):
        return _read(option, given)
    if len(given) > 1:
        raise UsageError(f"{option.path}: {option.flags[0]} is given {len(given)} times; give it once.")
    [text] = given
    return text if option.kind in ("text", "choice") else values.json_or_text(text)


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
    value = values.json_or_text(text)
    if option and option.kind == "text" and not isinstance(value, str | None):
        value = text
    for name in reversed(key.split(".")):
        value = {name: value}
    return dict(value)


def _from_file(file: Path) -> Layer:
    document = _document(file)
    if not isinstance(document, dict):
        raise UsageError(f"{file}: must be a table of sections such as [endpoint] and [load].")
    layer = _flat(document, f"{file}: ")
    for path in ("endpoint.api_key", "endpoint.headers"):
        if MASK in str(layer.get(path)):
            raise UsageError(
                f"{file}: {path} was masked when this file was written; remove it there and set "
                f"{KEY_VARIABLE} or --header instead."
            )
    return layer


def _document(file: Path) -> Any:
    try:
        text = file.read_text(encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{file}: cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise UsageError(f"{file}: is not UTF-8 text; save it as such.") from None
    match file.suffix.lower():
        case ".toml":
            return _toml(file, text)
        case ".yaml" | ".yml" | ".json":
            return _yaml(file, text)
    raise UsageError(f"{file}: name it .toml or .yaml, so that its format is known.")


def _toml(file: Path, text: str) -> Any:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{file}: not valid TOML: {error}.") from None


def _yaml(file: Path, text: str) -> Any:
    import yaml  # costs 15 ms; most runs have no YAML

    try:
        return yaml.safe_load(text) or {}
    except yaml.YAMLError as error:
        raise UsageError(f"{file}: not valid YAML: {' '.join(str(error).split())}.") from None


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
    return _read(option, [value]) if option.read and isinstance(value, str) else value


def _unknown(path: str, where: str) -> str:
    if any(known.startswith(f"{path}.") for known in by_path()):
        return f"{where}{path}: is a section; it must hold keys, not one value."
    near = nearest(path) or nearest(path.rpartition(".")[2])
    advice = f"Did you mean {near}?" if near else "docs/configuration.md lists all keys."
    return f"{where}{path}: there is no such key. {advice}"


def from_flags(struct: type[T], known: Sequence[Option], flags: Mapping[str, Any]) -> T:
    """A flat struct, such as the engine's options, from the texts of its flags. Raises `UsageError`."""
    given = [option for option in known if option.path in flags]
    return struct(**{one.path: _converted(one, _flag_value(one, flags[one.path])) for one in given})


def _config(merged: Layer) -> Config:
    tree: dict[str, dict[str, Any]] = {}
    for path, value in merged.items():
        section, _, name = path.partition(".")
        tree.setdefault(section, {})[name] = _converted(by_path()[path], value)
    return msgspec.convert(tree, Config)


def _converted(option: Option, value: Any) -> Any:
    """The value as its leaf's type has it. Raises `UsageError`."""
    if option.kind == "whole" and isinstance(value, float) and value.is_integer():
        value = int(value)
    try:
        found = msgspec.convert(value, option.type)
    except msgspec.ValidationError:
        raise _refused(option, value) from None
    if not values.is_json(value) or (option.parts and found not in option.choices):
        raise _refused(option, value)
    return found


def _read(option: Option, texts: Sequence[str]) -> Any:
    try:
        return option.read(texts) if option.read else list(texts)
    except ValueError as error:
        raise UsageError(f"{option.path} = {' '.join(texts)}: {error}") from None


def _refused(option: Option, value: Any) -> UsageError:
    """The sentence about a value of the wrong type or out of range."""
    shown = "" if option.secret else f" = {value}"
    near = difflib.get_close_matches(str(value), option.choices, 1)
    advice = f"Did you mean {near[0]}?" if near else option.hint
    return UsageError(f"{option.path}{shown}: must be {option.expects}. {advice}".rstrip())
