"""From a file, flags and `--set` to one checked `Config`: flags over file over defaults.

One rule: every layer becomes the same thing, a flat `{path: value}`, before anything is looked at. Tables
(`endpoint.extra_inputs`) are merged name by name; everything else is replaced as a whole. Every
fault is a `UsageError` that names the key, what it must be, and what to do.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from loadstone.config.check import check
from loadstone.config.convert import converted, from_texts, spelt, written
from loadstone.config.files import content, document
from loadstone.config.options import Option, by_path, nearest
from loadstone.config.secrets import MASK, secret_fields
from loadstone.config.tree import Config
from loadstone.errors import UsageError

Layer = dict[str, Any]
_NAME = re.compile(r"[\w.-]{0,80}")
T = TypeVar("T", bound=msgspec.Struct)

KEY_VARIABLE = "LOADSTONE_API_KEY"
KEY_S = 10.0
"""How long a command that brings the key, as in `--api-key-file <(pass show key)`, may take."""


def load(
    file: Path | None = None,
    flags: Mapping[str, Any] | None = None,
    sets: Sequence[str] = (),
    environ: Mapping[str, str] = os.environ,
) -> Config:
    """The configuration that a command line means.

    `flags` has, by path, the texts given for each flag (a bool for a switch); `sets` are `a.b=value`.
    The key in `LOADSTONE_API_KEY` goes over the file's and under the flag's; one that `api_key_file` holds is
    `api_key` from here on. Raises `UsageError`.
    """
    given = _together(_from_flags(flags or {}), _from_sets(sets))
    stored = _flat(document(file), f"{file}: ") if file else {}
    merged: Layer = {}
    for layer in (stored, _from_environment(environ), given):
        if keys := _one_key(layer):
            merged = {path: value for path, value in merged.items() if path not in keys}
        for path, value in layer.items():
            merged[path] = _over(merged.get(path), value)
    _refuse_masks(merged)
    return check(_with_files(_config(merged)))


def _one_key(layer: Layer) -> set[str]:
    """Both ways to give the key, when a layer has one: it goes over the other way of the layers below."""
    ways = {"endpoint.api_key", "endpoint.api_key_file"}
    if ways <= layer.keys():
        raise UsageError("endpoint.api_key_file: the key is given by endpoint.api_key too; give it once.")
    return ways if ways & layer.keys() else set()


def _with_files(config: Config) -> Config:
    """The configuration with the key that a file holds, and `~` in names of files written out."""
    here = config.endpoint
    names = ("api_key_file", "ca", "client_certificate", "client_key")
    given = {name: _at_home(name, file) for name in names if (file := getattr(here, name)) is not None}
    if "api_key_file" in given:
        given["api_key"] = _key_in(given["api_key_file"])
    return (
        msgspec.structs.replace(config, endpoint=msgspec.structs.replace(here, **given)) if given else config
    )


def _at_home(name: str, file: str) -> str:
    try:
        return str(Path(file).expanduser())
    except RuntimeError:
        raise UsageError(f"endpoint.{name} = {file!r}: there is no such user; write the path out.") from None


def _key_in(file: str) -> str:
    try:
        key = content(Path(file), pipe_s=KEY_S).decode("ascii").strip()
    except UsageError as error:
        raise UsageError(f"endpoint.api_key_file: {error}") from None
    except UnicodeDecodeError:
        raise UsageError(f"endpoint.api_key_file: {file}: holds no key, which is ASCII.") from None
    if not key:
        raise UsageError(f"endpoint.api_key_file: {file}: is empty.")
    return key


def _refuse_masks(merged: Layer) -> None:
    """A file or command that loadstone wrote has `***` where secrets were; they must not be sent."""
    leaves = (option.path for option in by_path().values() if option.secret)
    texts = [(path, str(merged.get(path))) for path in leaves]
    texts += [("endpoint.extra_inputs", text) for text in secret_fields(merged.get("endpoint.extra_inputs"))]
    for path, text in texts:
        if MASK in text:
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
            raise UsageError(f"--set {_name(key)}: must be KEY=VALUE, such as load.concurrency=8.")
        layer = _together(layer, _flat(_nested(key.strip(), value), "--set "))
    return layer


def _name(text: str) -> str:
    """What a text begins with that may be a key's name; a secret may follow."""
    found = _NAME.match(text)
    return found[0] if found else ""


def _nested(key: str, text: str) -> dict[str, Any]:
    option = by_path().get(key)
    value = spelt(key, text)
    if option and option.takes_text and not isinstance(value, str | list | None):
        value = text
    if option and option.kind == "text" and isinstance(value, list):
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
            layer[path] = written(by_path()[path], value)
        elif isinstance(value, dict) and any(known.startswith(f"{path}.") for known in by_path()):
            layer.update(_flat(value, where, f"{path}."))
        else:
            raise UsageError(_unknown(path, where))
    return layer


def _unknown(path: str, where: str) -> str:
    if any(known.startswith(f"{path}.") for known in by_path()):
        return f"{where}{path}: is a section; it must hold keys, not one value."
    near = nearest(path)
    advice = f"Did you mean {near}?" if near else "docs/configuration.md lists all keys."
    return f"{where}{_name(path)}: there is no such key. {advice}"


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
