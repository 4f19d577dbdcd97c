"""AIPerf's `profile_export_aiperf.json`: summaries, no requests (schema_version 1.4, as AIPerf 0.13 writes it).

Its inter_token_latency is one request's mean gap, (latency - TTFT) / (tokens - 1): our time_per_output_token. Its
inter_chunk_latency pools the gaps between chunks, whatever they hold.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from loadstone.compare.importers._document import Document, number
from loadstone.compare.sides import Known, Run

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
        (ours, stat): Known(value * TO_MS.get(found[theirs].get("unit", "ms"), 1.0))
        for theirs, ours in NAMES.items()
        if theirs in found
        for word, stat in STATS.items()
        if (value := number(found[theirs].get(word))) is not None
    }
    known |= {
        (ours, "mean"): Known(value)
        for theirs, ours in NUMBERS.items()
        if theirs in found and (value := number(found[theirs].get("avg"))) is not None
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
    )


def _asked(found: Mapping[str, Any]) -> dict[str, Any]:
    """What its user asked for; AIPerf writes down only that, and no default."""
    config = found.get("input_config") or {}
    endpoint, source, load = (config.get(name) or {} for name in ("endpoint", "input", "loadgen"))
    prompt = source.get("prompt") or {}
    names = endpoint.get("model_names") or []
    inputs, outputs = prompt.get("input_tokens") or {}, prompt.get("output_tokens") or {}
    return {
        "model": ", ".join(names) or None,
        "endpoint": endpoint.get("type"),
        "streaming": endpoint.get("streaming"),
        "input_length": _length(inputs),
        "output_length": _length(outputs),
        "load": _load(load),
        "tokenizer": (config.get("tokenizer") or {}).get("name"),
        "requests": None if (count := number(load.get("request_count"))) is None else f"{count:,.0f}",
        "seed": source.get("random_seed"),
        "dataset": source.get("file"),
    }


def _length(tokens: Mapping[str, Any]) -> str | None:
    if (mean := number(tokens.get("mean"))) is None:
        return None
    spread = number(tokens.get("stddev"))
    return f"{mean:g} tokens" + (f" +- {spread:g}" if spread else "")


def _load(load: Mapping[str, Any]) -> str | None:
    told = [
        f"{load['request_rate']:g} requests/s" if load.get("request_rate") is not None else "",
        f"at most {load['concurrency']} in flight" if load.get("concurrency") is not None else "",
    ]
    return ", ".join(word for word in told if word) or None
