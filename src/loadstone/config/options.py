"""What one leaf of the tree is: its key, type, default, flags and help, read from its annotation.

One rule: whatever shows or sets a key (flags, files, help, docs) goes through `options()`, so that
nothing is written down twice. Knows the shape of the tree, but no key by name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any, Literal, NamedTuple, get_type_hints

import msgspec
from msgspec import inspect

from loadstone import errors, registry
from loadstone.config.tree import Config

Kind = Literal["switch", "whole", "number", "choice", "text", "list", "table"]


class Option(NamedTuple):
    """One leaf; the fields after `help` are those of `tree.option`."""

    path: str
    type: Any
    cores: tuple[inspect.Type, ...]
    """What the type allows, without annotations and without None."""
    default: Any
    help: str
    flags: tuple[str, ...]
    group: str
    form: str | None
    hint: str
    secret: bool
    most: int
    parts: str | None
    read: Callable[[Sequence[str]], Any] | None
    rare: bool

    @property
    def kind(self) -> Kind:
        """What sort of value it takes: of several sorts the first of these, list, table, number, text, choice."""
        return "choice" if self.parts else _KINDS[type(self.cores[0])]

    @property
    def choices(self) -> tuple[str, ...]:
        """The words allowed, `inf` beside numbers too. Parts of the registry are listed, not imported."""
        if self.parts:
            return registry.names(self.parts)
        return tuple(word for core in self.cores for word in _literals(core))

    @property
    def takes_text(self) -> bool:
        """Whether any text is a value of it."""
        return any(isinstance(core, inspect.StrType) for core in self.cores)

    @property
    def holds_numbers(self) -> bool:
        """Whether it is a table whose values are all numbers."""
        [core, *_] = self.cores
        return isinstance(core, inspect.DictType) and not isinstance(core.value_type, inspect.AnyType)

    @property
    def holds_tables(self) -> bool:
        """Whether it is a list of tables."""
        [core, *_] = self.cores
        return isinstance(core, inspect.VarTupleType) and isinstance(core.item_type, inspect.DictType)

    @property
    def expects(self) -> str:
        """What a value must be, in words: `a number above 0`."""
        if self.kind == "choice":
            return f"one of {', '.join(self.choices)}"
        return " or ".join(map(_in_words, self.cores))

    @property
    def shown_default(self) -> str:
        """The default as one would type it; empty when there is none, or the help states it."""
        if self.kind == "switch" or self.default is None or self.default in ((), {}):
            return ""
        return f"{self.default:g}" if isinstance(self.default, float) else str(self.default)


_KINDS: dict[type[inspect.Type], Kind] = {
    inspect.BoolType: "switch",
    inspect.IntType: "whole",
    inspect.FloatType: "number",
    inspect.LiteralType: "choice",
    inspect.StrType: "text",
    inspect.VarTupleType: "list",
    inspect.DictType: "table",
}
_WORDS: dict[Kind, str] = {
    "switch": "true or false",
    "whole": "a whole number",
    "number": "a number",
    "text": "a text, not empty",
    "list": "a list",
    "table": "a table",
}
_MANY: dict[type[inspect.Type], str] = {
    inspect.FloatType: "numbers",
    inspect.StrType: "texts",
    inspect.DictType: "tables",
}


def _in_words(core: inspect.Type) -> str:
    if isinstance(core, inspect.DictType) and not isinstance(core.value_type, inspect.AnyType):
        return f"a table whose values are each {_in_words(*_cores(core.value_type))}"
    if isinstance(core, inspect.VarTupleType):
        return f"a list of {_many(*_cores(core.item_type))}"
    return ", ".join(_literals(core)) or _WORDS[_KINDS[type(core)]] + _range(core)


def _many(item: inspect.Type) -> str:
    """Several of one type; a pair is a point of a rate over time."""
    return "SECONDS:RATE points" if isinstance(item, inspect.TupleType) else _MANY[type(item)] + _range(item)


def _literals(core: inspect.Type) -> tuple[str, ...]:
    return tuple(str(value) for value in getattr(core, "values", ()))


def _range(core: inspect.Type) -> str:
    above, least, most = (_digits(getattr(core, name, None)) for name in ("gt", "ge", "le"))
    if least and most:
        return f" from {least} to {most}"
    lower = f" above {above}" if above else f", at least {least}" if least else ""
    return f"{lower}, at most {most}" if most else lower


def _digits(limit: float | None) -> str:
    return f"{limit:g}" if isinstance(limit, float) else "" if limit is None else str(limit)


@cache
def options() -> tuple[Option, ...]:
    """All leaves of `Config`, in the order of the tree."""
    sections = get_type_hints(Config, include_extras=True)
    return tuple(
        leaf
        for name, section in sections.items()
        for leaf in leaves(section.__origin__, f"{name}.", section.__metadata__[0].title)
    )


@cache
def by_path() -> dict[str, Option]:
    """All leaves of `Config` by their key."""
    return {option.path: option for option in options()}


def nearest(word: str) -> str | None:
    """The key that `word` most likely means: a misspelt key, the last part of one, or a flag's name."""
    meanings = {name: option.path for option in options() for name in _names(option)}
    whole = word.replace("-", "_")
    last = whole.rpartition(".")[2]
    if last in meanings:
        return meanings[last]
    found = errors.nearest(whole, meanings) or errors.nearest(last, meanings)
    return meanings[found] if found else None


def _names(option: Option) -> list[str]:
    flags = (flag.lstrip("-").replace("-", "_") for flag in option.flags if flag.startswith("--"))
    return [option.path, option.path.rpartition(".")[2], *flags]


def leaves(section: type[msgspec.Struct], prefix: str = "", group: str = "") -> tuple[Option, ...]:
    """The leaves of one flat struct whose fields are all annotated with an `option`.

    `prefix` begins their paths; `group` is the heading of those that name none.
    """
    defaults = section()
    hints = get_type_hints(section, include_extras=True)
    return tuple(_leaf(prefix + name, group, leaf, getattr(defaults, name)) for name, leaf in hints.items())


def _leaf(path: str, group: str, leaf: Any, default: Any) -> Option:
    meta: msgspec.Meta = leaf.__metadata__[-1]
    extra = dict(meta.extra or {})
    extra["group"] = extra["group"] or group
    return Option(
        path, leaf, tuple(_cores(inspect.type_info(leaf))), default, meta.description or "", **extra
    )


def _cores(kind: inspect.Type) -> Iterator[inspect.Type]:
    if isinstance(kind, inspect.Metadata):
        yield from _cores(kind.type)
    elif isinstance(kind, inspect.UnionType):
        for one in kind.types:
            yield from _cores(one)
    elif not isinstance(kind, inspect.NoneType):
        yield kind
