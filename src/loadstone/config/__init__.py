"""The configuration of a run: `load` makes it from file and flags, `Config` is what everything else reads.

`tree` states all keys and `options` describes them; `files`, `values`, `convert` and `layers` read them. `check` holds
them together by the `rules` of its parts: `check_way`, `check_request`, `check_phases`, `pem`; `phases` makes a load of
each phase, `fitting` and `check_load` see to its shape. `secrets` and `spellings` let settings out, `docs` writes them
down. Imports neither numpy nor polars, and nothing that does.
"""

from loadstone.config.check import LEAST_RUNS, check, check_goodput
from loadstone.config.layers import KEY_VARIABLE, from_flags, load
from loadstone.config.options import Option, leaves, options
from loadstone.config.phases import PhaseLoad, phase_loads
from loadstone.config.secrets import MASK, dump_toml, hide, hide_all, masked, masked_command, secrets
from loadstone.config.tree import (
    ENGINE,
    AtLeastOne,
    Config,
    CostConfig,
    Count,
    CountOrZero,
    EndpointConfig,
    InputConfig,
    LoadConfig,
    NonNegative,
    OutputConfig,
    Positive,
    RunsConfig,
    Seed,
    ServerConfig,
    SloConfig,
    option,
    rare,
)

__all__ = [
    "ENGINE",
    "KEY_VARIABLE",
    "LEAST_RUNS",
    "MASK",
    "AtLeastOne",
    "Config",
    "CostConfig",
    "Count",
    "CountOrZero",
    "EndpointConfig",
    "InputConfig",
    "LoadConfig",
    "NonNegative",
    "Option",
    "OutputConfig",
    "PhaseLoad",
    "Positive",
    "RunsConfig",
    "Seed",
    "ServerConfig",
    "SloConfig",
    "check",
    "check_goodput",
    "dump_toml",
    "from_flags",
    "hide",
    "hide_all",
    "leaves",
    "load",
    "masked",
    "masked_command",
    "option",
    "options",
    "phase_loads",
    "rare",
    "secrets",
]
