"""What a configuration must be beyond the type and range of each key: keys that fit together.

One rule: a setting that would have no effect is an error, never ignored. A value that equals its default
asks for nothing, so it is always allowed; that keeps a written `config.toml` readable again. The rules are apart, by
question: the way to the servers, the request, the phases of the load.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from types import ModuleType
from typing import Any

from loadstone import registry
from loadstone.config.check_phases import check_phases
from loadstone.config.check_request import (
    check_request,
    request_without_effect,
    server_without_effect,
    shares_without_effect,
)
from loadstone.config.check_way import check_way, way_without_effect
from loadstone.config.options import by_path
from loadstone.config.rules import Rule, refused
from loadstone.config.tree import Config
from loadstone.errors import UsageError, did_you_mean

NOT_VIRTUAL = (
    "endpoint.connection_reuse",
    "endpoint.connect_timeout_s",
    "endpoint.max_response_bytes",
    "server.wait_for_model_s",
    "server.strict",
    "server.reset_kv_cache",
    "server.profiler",
    "server.metrics",
    "server.metrics_urls",
    "server.metrics_interval_s",
    "load.workers",
    "output.keep",
    "output.check_tokens",
)
"""Settings of what a run on the virtual clock does not have."""

LEAST_RUNS = 3
"""From which on their mean may be known well enough to do no more of them."""


def check(config: Config) -> Config:
    """The same configuration, when its parts fit together and the files it names can be used.

    Raises `UsageError` with the first contradiction found.
    """
    endpoint = registry.load("endpoints", config.endpoint.type)
    for path, broken, why in _without_effect(config, endpoint):
        value = _value(config, path)
        if broken and value != by_path()[path].default:
            raise refused(path, why, None if by_path()[path].secret else value)
    check_phases(config)
    check_request(config.endpoint, config.server)
    check_way(config.endpoint)
    return config


def check_goodput(config: Config, metrics: Collection[str]) -> None:
    """Raises `UsageError` for a limit on something that is not among the names of `metrics`."""
    for name in config.slo.goodput:
        if name not in metrics:
            advice = did_you_mean(name, metrics) or f"Known: {', '.join(sorted(metrics))}."
            raise UsageError(f"slo.goodput.{name}: there is no such metric. {advice}")


def _without_effect(config: Config, endpoint: ModuleType) -> Iterator[Rule]:
    """Every rule about settings without effect, by their whole path; those within the load are `phase_loads`'."""
    yield from request_without_effect(config.endpoint, endpoint)
    yield from way_without_effect(config.endpoint)
    yield from shares_without_effect(config.endpoint)
    yield from server_without_effect(config.server)
    yield from _input_without_effect(config, endpoint)
    yield from _turns_without_effect(config)
    yield from _runs_without_effect(config)
    yield from _reading_without_effect(config)
    yield Rule("output.force", config.output.folder is None, "has no effect without --artifact-dir.")
    for path in NOT_VIRTUAL:
        why = "has no effect with --virtual, which has no sockets and no processes; leave it out."
        yield Rule(path, config.endpoint.virtual, why)
    uncounted = config.input.tokenizer == "none" and config.output.check_tokens == "all"
    yield Rule("output.check_tokens", uncounted, "needs a tokenizer; leave out --tokenizer none.")


def _input_without_effect(config: Config, endpoint: ModuleType) -> Iterator[Rule]:
    here, kind = config.input, config.endpoint.type
    yield Rule("input.osl_stddev", here.osl_mean is None, "has no effect without a mean; set --osl.")
    no_ids = f"endpoint {kind} takes no token ids; use --endpoint-type completions."
    yield Rule("input.token_ids", not endpoint.TOKEN_IDS, no_ids)
    untold = "needs a tokenizer; leave out --tokenizer none."
    yield Rule("input.token_ids", here.tokenizer == "none", untold)
    no_template = f"endpoint {kind} has no chat template; leave it out."
    yield Rule("input.isl_includes_template", kind != "chat", no_template)


def _turns_without_effect(config: Config) -> Iterator[Rule]:
    """How many prompts and turns there are, and the time between turns: a file says it, or there is none."""
    here = config.input
    for name in ("turns_mean", "turns_stddev", "entries", "think_mean_ms", "think_stddev_ms"):
        yield Rule(f"input.{name}", here.file is not None, "has no effect on --input-file, which says it.")
    single = here.turns_mean == 1 and not here.turns_stddev and here.file is None
    for name in ("think_mean_ms", "think_stddev_ms", "think_ratio"):
        why = "has no effect on conversations of one turn; set --conversation-turn-mean."
        yield Rule(f"input.{name}", single, why)
    unthought = not (here.think_mean_ms or here.think_stddev_ms or here.file)
    yield Rule("input.think_ratio", unthought, "has no effect without --conversation-turn-delay-mean.")
    spaced = config.load.user_centric_rate is not None
    for name in ("think_mean_ms", "think_stddev_ms", "think_ratio"):
        why = "has no effect with --user-centric-rate, which says when the next turn is."
        yield Rule(f"input.{name}", spaced, why)


def _value(config: Config, path: str) -> Any:
    section, _, name = path.partition(".")
    return getattr(getattr(config, section), name)


def _reading_without_effect(config: Config) -> Iterator[Rule]:
    """What answers are held against when they are read, and what they are said to cost."""
    for path in ("slo.stall_ms", "slo.reading_speed"):
        yield Rule(path, not config.endpoint.streaming, "has no effect without --streaming.")
    yield Rule("cost.gpus", config.cost.gpu_hour_price is None, "has no effect without --gpu-hour-price.")


def _runs_without_effect(config: Config) -> Iterator[Rule]:
    runs = config.runs
    lone = runs.count == 1 and runs.interleave is None
    why = "has no effect on one run; set --num-profile-runs."
    for name in ("cooldown_s", "vary_seed", "warmup_once"):
        yield Rule(f"runs.{name}", lone, why)
    yield Rule(
        "runs.stop_when", runs.count < LEAST_RUNS, f"needs --num-profile-runs of {LEAST_RUNS} or more."
    )
    several = len(config.endpoint.urls) > 1
    yield Rule("runs.interleave", several, "needs one --url, that of the first server.")
