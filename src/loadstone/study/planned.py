"""Which runs a study does, in which order, each as a configuration of its own. Pure."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import msgspec

from loadstone.config import Config, LoadConfig, RunsConfig, phase_loads

_WARMUP = "warmup_"


class Planned(NamedTuple):
    """One run of a study."""

    name: str
    """Of its folder: `run-1`, and of two servers `a-1`, `b-1`."""
    side: str
    """`a` or `b`; of one server `run`."""
    config: Config


def planned(config: Config, seed: int, home: Path) -> list[Planned]:
    """Every run of a study in `home`, in order: 1 2 3, and of two servers a-1 b-1 a-2 b-2.

    Run n of a server has the seed `seed + n - 1` (or always `seed`): both servers get the same requests, and no run
    those of an earlier one, which a prefix cache would still hold.
    """
    runs = config.runs
    sides = {"run": config.endpoint.url}
    if runs.interleave is not None:
        sides = {"a": config.endpoint.url, "b": runs.interleave}
    found = []
    for number in range(runs.count):
        load = without_warmup(config.load) if runs.warmup_once and number else config.load
        for side, url in sides.items():
            name = f"{side}-{number + 1}"
            own = msgspec.structs.replace(
                config,
                endpoint=msgspec.structs.replace(config.endpoint, url=url),
                input=msgspec.structs.replace(config.input, seed=seed + number * runs.vary_seed),
                load=load,
                runs=RunsConfig(),
                output=msgspec.structs.replace(config.output, folder=str(home / name)),
            )
            found.append(Planned(name, side, own))
    return found


def without_warmup(load: LoadConfig) -> LoadConfig:
    """The same load that begins with its first phase that is no warm-up."""
    plain = LoadConfig()
    reset = {name: getattr(plain, name) for name in load.__struct_fields__ if name.startswith(_WARMUP)}
    kinds = [phase.kind for phase in phase_loads(load)]
    phases = tuple(phase for phase, kind in zip(load.phases, kinds, strict=False) if kind != "warmup")
    return msgspec.structs.replace(load, **reset, phases=phases)
