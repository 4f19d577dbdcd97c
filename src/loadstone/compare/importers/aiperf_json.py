"""AIPerf's `profile_export_aiperf.json`: summaries, no requests (schema_version 1.4, as AIPerf 0.13 writes it).

Its inter_token_latency is one request's mean gap, (latency - TTFT) / (tokens - 1): our time_per_output_token. Its
inter_chunk_latency pools the gaps between chunks, whatever they hold.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from loadstone.compare.importers._asked import load
from loadstone.compare.importers._document import Document, measured, number, part
from loadstone.compare.sides import SERVER, Known, Run

NAMES = {
    "time_to_first_token": "time_to_first_token",
    "inter_token_latency": "time_per_output_token",
    "inter_chunk_latency": "inter_chunk_latency",
    "request_latency": "request_latency",
}
STATS = {"avg": "mean", "p50": "p50", "p90": "p90", "p99": "p99"}
NUMBERS = {
    "request_throughput": "request_throughput",
    "output_token_throughput": "output_token_throughput",
    "total_token_throughput": "total_token_throughput",
    "goodput": "goodput",
    "request_error_rate": "error_rate",
}
TO_MS = {"ms": 1.0, "s": 1e3, "sec": 1e3, "us": 1e-3, "ns": 1e-6}
TOKENIZER = "AIPerf's own tokenizer"
"""Counts the output tokens unless --use-server-token-count is given."""
CAVEATS = {
    "request_throughput": "divides by the time of the successes alone",
    "output_token_throughput": "divides by the time of the successes alone",
    "total_token_throughput": "divides by the time of the successes alone",
}


def knows(document: Document) -> bool:
    """Whether this is one."""
    return document.has("aiperf_version") or document.has("input_config", "request_latency")


def run(path: str, document: Document) -> Run:
    """The run."""
    found = document.first
    known = {
        (ours, stat): Known(value * TO_MS.get(part(found, theirs).get("unit", "ms"), 1.0))
        for theirs, ours in NAMES.items()
        for word, stat in STATS.items()
        if (value := measured(part(found, theirs), word, f"{theirs} {word}")) is not None
    }
    known |= {
        (ours, "mean"): Known(value)
        for theirs, ours in NUMBERS.items()
        if (value := measured(part(found, theirs), "avg", theirs)) is not None
    }
    notes = (
        []
        if found.get("is_complete", True)
        else [f"AIPerf says it is incomplete: {found.get('incomplete_reason')}."]
    )
    return Run(
        path=path,
        tool=f"AIPerf {found.get('aiperf_version', '')}".strip(),
        asked=_asked(found),
        numbers=known,
        caveats=CAVEATS,
        notes=tuple(notes),
        counted_by=SERVER if _by_server(found) else TOKENIZER,
    )


def _by_server(found: Mapping[str, Any]) -> bool:
    """Whether the tokens are those that the server told: then both sums are one."""
    told, counted = (
        number(part(found, name).get("sum")) for name in ("usage_completion_tokens", "output_sequence_length")
    )
    return told is not None and told == counted


def _asked(found: Mapping[str, Any]) -> dict[str, Any]:
    """What its user asked for; AIPerf writes down only that, and no default. Of several phases only the measured one."""
    config = part(found, "input_config")
    endpoint = part(config, "endpoint")
    models = part(config, "models").get("items") or []
    source = _only(config.get("datasets"))
    prompts = part(source, "prompts")
    phase = _only([one for one in config.get("phases") or () if one.get("kind") != "warmup"])
    return {
        "model": ", ".join(one["name"] for one in models) or None,
        "endpoint": endpoint.get("type"),
        "streaming": endpoint.get("streaming"),
        "input_length": _length(part(prompts, "isl")),
        "output_length": _length(part(prompts, "osl")),
        "load": _load(phase),
        "tokenizer": part(config, "tokenizer").get("name"),
        "requests": None if (count := number(phase.get("requests"))) is None else f"{count:,.0f}",
        "seed": source.get("random_seed"),
        "dataset": source.get("path"),
        "sampling": ", ".join(f"{name}={value}" for name, value in sorted(part(endpoint, "extra").items()))
        or None,
    }


def _only(several: Any) -> Mapping[str, Any]:
    """The one entry of a list; of several none speaks for all."""
    return several[0] if several and len(several) == 1 else {}


def _length(tokens: Mapping[str, Any]) -> str | None:
    if (mean := number(tokens.get("mean"))) is None:
        return None
    spread = number(tokens.get("stddev"))
    return f"{mean:g} tokens" + (f" +- {spread:g}" if spread else "")


def _load(phase: Mapping[str, Any]) -> str | None:
    """In our words where it is a closed loop or of Poisson arrivals; the other kinds are not known well enough to say."""
    if phase.get("type") not in ("concurrency", "poisson"):
        return None
    return load(phase.get("rate"), phase.get("concurrency"))
