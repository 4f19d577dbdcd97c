"""The stretches of load that a configuration asks for, each as a `LoadConfig` of its own.

Either `load.phases` lists them, or there is one measured phase, with a warm-up before it and a cooldown after it where
the keys named so ask for one. A phase is [load] with keys of its own over it. What of [load] does nothing beside them
is left out of that phase; a phase's own key that does nothing is an error, and so is a key of [load] that does
nothing in any phase.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple, cast

import msgspec

from loadstone.config.check_load import bounded, ways
from loadstone.config.convert import converted, written
from loadstone.config.fitting import NAMED, SHAPE, WHOLE_RUN, fitting, flags, given, without
from loadstone.config.options import by_path
from loadstone.config.rules import refused
from loadstone.config.tree import LoadConfig
from loadstone.errors import UsageError, did_you_mean

Kind = Literal["warmup", "measured", "cooldown"]
MOST = 100
"""Phases of one run."""
_TITLE = ("name", "kind", "handover")
KINDS = ("warmup", "measured", "cooldown")
HANDOVERS = ("drained", "seamless")
NAME = re.compile(r"[A-Za-z0-9._-]{1,40}")
_BOUNDS = ("request_count", "sessions", "duration_s")
_ENDS = (*_BOUNDS, "grace_s", "stop_when", "conditioned", "drain_queue")
"""Leaves that say how much there is of a phase, or mean nothing without that."""
_RAMPS = tuple(name for name in SHAPE if "_ramp_" in name)
_SCHEDULE = tuple(name for name in SHAPE if name.startswith("fixed_schedule"))
_CANCELLATION = ("cancellation_percent", "cancellation_delay_s")
_OF_MEASURED: dict[Kind, tuple[str, ...]] = {
    "warmup": (*_CANCELLATION, "conditioned", "stop_when"),
    "measured": (),
    "cooldown": ("conditioned", "stop_when"),
}
"""Leaves of [load] that are not for phases of a kind."""


class PhaseLoad(NamedTuple):
    """One stretch of load. `load` has its shape, and nothing of other phases.

    A `grace_s` of None is the default of a measured phase; of a warm-up it means that all answers are awaited.
    """

    name: str
    kind: Kind
    seamless: bool
    """It begins when the phase before has nothing more to send, while its last answers still come."""
    load: LoadConfig


def phase_loads(load: LoadConfig) -> list[PhaseLoad]:
    """The phases of a load in their order, each complete and fitting together. Raises `UsageError`."""
    load = without(load, *_idle_of_vllm(load))
    return _listed(load) if load.phases else list(_named(load))


def _idle_of_vllm(load: LoadConfig) -> Iterator[str]:
    """What commands for vllm bench say though it asks for nothing: its ramp wants `inf` beside it, whose burstiness is 1."""
    if load.request_rate == "inf" and load.arrival_smoothness == 1:
        yield "arrival_smoothness"
    if load.request_rate == "inf" and load.index_ramp_strategy is not None:
        yield "request_rate"


def place(load: LoadConfig, at: int, name: str) -> str:
    """The key that gave the phase with number `at` its `name`."""
    if load.phases:
        return f"load.phases[{at}].{name}" if name in load.phases[at] else f"load.{name}"
    kind = phase_loads(load)[at].kind
    own = "" if kind == "measured" else f"{kind}_"
    return f"load.{own}{name}" if own + name in NAMED and given(load, own + name) else f"load.{name}"


def _named(load: LoadConfig) -> Iterator[PhaseLoad]:
    """Warm-up, measured, cooldown."""
    shape = without(load, *WHOLE_RUN, *NAMED)
    warmup, cooldown = _own(load, "warmup_"), _own(load, "cooldown_")
    _check_warmup(load, warmup)
    if warmup:
        yield PhaseLoad("warmup", "warmup", False, _warmup(shape, warmup))
    own = {name: getattr(shape, name) for name in SHAPE}
    seamless = load.warmup_handover == "seamless"
    yield PhaseLoad("measured", "measured", seamless, fitting(shape, own, "load.", "measured", flags("")))
    if cooldown:
        yield PhaseLoad("cooldown", "cooldown", True, _cooldown(shape, cooldown))


def _own(load: LoadConfig, prefix: str) -> dict[str, Any]:
    """What is given of the keys that begin with `prefix`, without it, as keys of a phase."""
    names = (name for name in NAMED if name.startswith(prefix) and given(load, name))
    found = {name.removeprefix(prefix): getattr(load, name) for name in names}
    found.pop("handover", None)
    return found


def _check_warmup(load: LoadConfig, own: Mapping[str, Any]) -> None:
    idle = [name for name in NAMED if name.startswith("warmup_") and given(load, name)]
    if idle and not own.keys() & set(_BOUNDS):
        why = "has no effect without a warm-up; set --warmup-request-count, --num-warmup-sessions or --warmup-duration."
        raise refused(f"load.{idle[0]}", why, getattr(load, idle[0]))
    if "request_rate" in own and not ways(load):
        why = "has no effect in a closed loop; set --request-rate, or list the phases in a file."
        raise refused("load.warmup_request_rate", why, own["request_rate"])


def _warmup(shape: LoadConfig, own: Mapping[str, Any]) -> LoadConfig:
    """The measured shape, but no ramps except its own, nothing cancelled, nothing that depends on how much is measured.

    A schedule that is given, by the data or by the number of a request, is replaced by a closed loop.
    """
    base = without(shape, *_ENDS, *_RAMPS, *_SCHEDULE, *_CANCELLATION)
    return fitting(base, own, "load.warmup_", "warmup", flags("warmup_"))


def _cooldown(shape: LoadConfig, own: Mapping[str, Any]) -> LoadConfig:
    """The measured shape as it was at its end."""
    path = f"load.cooldown_{next(iter(own))}"
    if shape.fixed_schedule:
        raise refused(path, "there is no load to keep up after a fixed schedule.")
    rate = shape.request_rate_series[-1][1] if shape.request_rate_series else shape.index_ramp_end
    if rate == 0:
        raise refused(path, "there is no load to keep up: load.request_rate_series ends at 0.")
    base = without(shape, *_ENDS, *_RAMPS, "request_rate_series")
    if rate is not None:
        base = msgspec.structs.replace(base, request_rate=rate)
    return fitting(base, own, "load.cooldown_", "cooldown", flags("cooldown_"))


def _listed(load: LoadConfig) -> list[PhaseLoad]:
    """What `load.phases` says."""
    for name in NAMED:
        if given(load, name):
            why = "has no effect beside load.phases; list a phase of that kind there."
            raise refused(f"load.{name}", why, getattr(load, name))
    if len(load.phases) > MOST:
        raise refused("load.phases", f"are {len(load.phases)}; give at most {MOST}.")
    base = without(load, *WHOLE_RUN, *NAMED)
    found = [_phase(base, table, f"load.phases[{at}]") for at, table in enumerate(load.phases)]
    _check_order(found)
    _check_stop(load.phases, found)
    _check_use(base, load.phases, found)
    return found


def _check_stop(tables: Sequence[Mapping[str, Any]], found: Sequence[PhaseLoad]) -> None:
    """What is known well enough ends the whole load, so it cannot be a phase behind which others are measured."""
    last = max((at for at, one in enumerate(found) if one.kind == "measured"), default=0)
    for at, table in enumerate(tables[:last]):
        if table.get("stop_when"):
            why = "ends the load, so it is for the last measured phase."
            raise refused(f"load.phases[{at}].stop_when", why, table["stop_when"])


def _phase(base: LoadConfig, table: Mapping[str, Any], where: str) -> PhaseLoad:
    kind = cast(Kind, _word(table, "kind", KINDS, "measured", where))
    seamless = _word(table, "handover", HANDOVERS, "drained", where) == "seamless"
    name = _name(table.get("name"), where)
    own = {key: _value(key, value, where) for key, value in table.items() if key not in _TITLE}
    if kind != "measured" and own.get("stop_when"):
        raise refused(f"{where}.stop_when", "is for measured phases.", own["stop_when"])
    if kind == "warmup" and own.get("cancellation_percent"):
        raise refused(f"{where}.cancellation_percent", "is not for a warm-up.", own["cancellation_percent"])
    load = fitting(without(base, *_OF_MEASURED[kind]), own, f"{where}.", name, {key: key for key in SHAPE})
    if kind != "measured" and not bounded(load):
        raise UsageError(f"{where}: has no end; give it request_count, sessions or duration_s.")
    return PhaseLoad(name, kind, seamless, load)


def _name(name: Any, where: str) -> str:
    if isinstance(name, str) and NAME.fullmatch(name):
        return name
    raise refused(f"{where}.name", "must be 1 to 40 letters, digits and signs of - _ . that name it.", name)


def _word(table: Mapping[str, Any], key: str, known: Sequence[str], default: str, where: str) -> str:
    word = table.get(key, default)
    if word not in known:
        advice = did_you_mean(str(word), known)
        raise refused(f"{where}.{key}", f"must be one of {', '.join(known)}. {advice}".rstrip(), word)
    return str(word)


def _value(key: str, value: Any, where: str) -> Any:
    """The value of a phase's own key, as its leaf has it."""
    if key in WHOLE_RUN:
        raise UsageError(f"{where}.{key}: is not for one phase; give it in [load].")
    if key not in SHAPE:
        advice = did_you_mean(key, (*SHAPE, *_TITLE))
        raise UsageError(f"{where}.{key}: there is no such key of a phase. {advice}".rstrip())
    option = by_path()[f"load.{key}"]._replace(path=f"{where}.{key}")
    return converted(option, written(option, value))


def _check_order(phases: Sequence[PhaseLoad]) -> None:
    """Raises `UsageError` unless warm-ups, measured phases and cooldowns come in this order, under different names."""
    kinds = [phase.kind for phase in phases]
    if "measured" not in kinds:
        raise UsageError("load.phases: none of them is measured; leave out the kind of one.")
    if phases[0].seamless:
        raise refused("load.phases[0].handover", "is the first phase, which follows no other.", "seamless")
    first, last = kinds.index("measured"), len(kinds) - 1 - kinds[::-1].index("measured")
    names = [phase.name for phase in phases]
    for at, kind in enumerate(kinds):
        if kind == "warmup" and at > first:
            raise refused(f"load.phases[{at}].kind", "must come before all measured phases.", kind)
        if kind == "cooldown" and at < last:
            raise refused(f"load.phases[{at}].kind", "must come after all measured phases.", kind)
        if names[at] in names[:at]:
            why = f"is the name of load.phases[{names.index(names[at])}] too; give another."
            raise refused(f"load.phases[{at}].name", why, names[at])


def _check_use(base: LoadConfig, tables: Sequence[Mapping[str, Any]], found: Sequence[PhaseLoad]) -> None:
    """Raises `UsageError` for a key of [load] that no phase has from there."""
    for name in SHAPE:
        kept = (
            name not in table and given(phase.load, name) for table, phase in zip(tables, found, strict=True)
        )
        if given(base, name) and not any(kept):
            raise refused(
                f"load.{name}", "has no effect in any of load.phases; leave it out.", getattr(base, name)
            )
