"""Whether the phases of the load fit together, and each with the server and the prompts."""

from __future__ import annotations

from collections.abc import Iterator

from loadstone.config.check_load import bounded
from loadstone.config.fitting import given
from loadstone.config.phases import phase_loads, place
from loadstone.config.rules import Rule, refused
from loadstone.config.tree import Config, LoadConfig
from loadstone.errors import UsageError, did_you_mean

STOPPING = (
    "time_to_first_token",
    "inter_token_latency",
    "request_latency",
    "time_per_output_token",
    "request_throughput",
    "output_token_throughput",
)
"""Metrics that are known while the load runs, so that they can stop it."""
STREAMED = frozenset({"time_to_first_token", "inter_token_latency", "time_per_output_token"})
"""Those of them that only a stream shows."""


def check_phases(config: Config) -> None:
    """Raises `UsageError` for the first phase that does not fit."""
    for at, phase in enumerate(phase_loads(config.load)):
        _check_stops(config, phase.load)
        for name, broken, why in _misplaced(config, phase.load):
            if broken and given(phase.load, name):
                raise refused(place(config.load, at, name), why, getattr(phase.load, name))


def _misplaced(config: Config, load: LoadConfig) -> Iterator[Rule]:
    """Every rule about a setting of a phase that this server or these prompts do not allow."""
    here = config.input
    unstreamed = "needs --streaming, which tells when the first token has come."
    yield Rule("prefill_concurrency", not config.endpoint.streaming, unstreamed)
    yield Rule("fixed_schedule", here.file is None, "needs --input-file, which has the timestamps.")
    unbounded = load.request_rate == "inf" and not bounded(load) and here.file is None
    yield Rule(
        "request_rate",
        unbounded,
        "sends everything at once, so something has to say how much; set --request-count.",
    )
    several = here.turns_mean != 1 or bool(here.turns_stddev)
    for name in ("conditioned", "index_ramp_strategy"):
        yield Rule(name, several, "counts requests, so it is for conversations of one turn.")
    endless = not bounded(load) and here.file is None
    why = "needs an end in case it is never met: set --request-count, --num-sessions or --duration."
    yield Rule("stop_when", endless, why)


def _check_stops(config: Config, load: LoadConfig) -> None:
    """Raises `UsageError` for a criterion on something that nobody knows while the load runs."""
    for name in load.stop_when:
        if name not in STOPPING:
            advice = did_you_mean(name, STOPPING) or f"Known: {', '.join(STOPPING)}."
            raise UsageError(f"load.stop_when.{name}: is no metric that can stop a run. {advice}")
        if name in STREAMED and not config.endpoint.streaming:
            raise UsageError(f"load.stop_when.{name}: needs --streaming.")
