"""The result file of `vllm bench serve --save-result --save-detailed`, version 0.32.

Its inter-token latency pools gaps between chunks, whatever they held, and its TPOT is (latency - TTFT) / (n - 1). There an event
of a role alone, or of the finish reason, is a chunk as well; a server that sends them apart adds gaps near 0 to its
list, and none to ours. What has no value is null here, where that tool writes 0; texts and the waits in its own queue are left out.
"""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from loadstone.formats._requests import Requests, Spread, value
from loadstone.report import Report
from loadstone.stats import Floats

SUMMARY = "result file of vllm bench serve, every request listed"
BACKENDS = {"chat": "openai-chat", "completions": "openai"}


def text(report: Report, folder: Path | None) -> str:
    """The file, on one line as there."""
    requests = Requests(folder)
    endpoint, load = report.config.get("endpoint", {}), report.config.get("load", {})
    backend = BACKENDS.get(endpoint.get("type"), endpoint.get("type"))
    began = datetime.fromisoformat(report.run.started)
    rate = load.get("request_rate")
    inputs = np.where(np.isfinite(requests.latency_s), requests.input_tokens, np.nan)
    gaps = requests.gaps_s
    pooled = None if gaps is None else np.array([gap for one in gaps for gap in one])
    chunks, under_way = requests.peaks()
    told: dict[str, Any] = {
        "date": began.strftime("%Y%m%d-%H%M%S"),
        "endpoint_type": backend,
        "backend": backend,
        "label": None,
        "model_id": endpoint.get("model"),
        "tokenizer_id": report.config.get("input", {}).get("tokenizer"),
        "num_prompts": report.outcomes.planned,
        "request_rate": "inf" if rate is None else rate,
        "burstiness": load.get("arrival_smoothness") or 1.0,
        "max_concurrency": load.get("concurrency"),
        "duration": value(report, "benchmark_duration"),
        "completed": requests.completed,
        "failed": requests.failed,
        "total_input_tokens": _total(inputs),
        "total_output_tokens": _total(requests.output_tokens),
        "request_throughput": value(report, "request_throughput"),
        "request_goodput": value(report, "goodput"),
        "output_throughput": value(report, "output_token_throughput"),
        "total_token_throughput": value(report, "total_token_throughput"),
        "input_lens": requests.whole(requests.input_tokens),
        "output_lens": requests.whole(requests.output_tokens),
        "ttfts": requests.of(requests.ttft_s),
        "itls": gaps,
        "latencies": requests.of(requests.latency_s),
        "start_times": requests.of(requests.start_s),
        "errors": requests.errors,
        "max_output_tokens_per_s": chunks if gaps is not None else None,
        "max_concurrent_requests": under_way,
    }
    for name, values in (
        ("ttft", requests.ttft_s),
        ("tpot", requests.tpot_s(requests.latency_s)),
        ("itl", pooled),
        ("e2el", requests.latency_s),
    ):
        told |= _spread(name, values)
    told["loadstone"] = {"version": report.loadstone_version, "certificate": report.certificate.verdict}
    return msgspec.json.encode(told).decode() + "\n"


def _spread(name: str, values_s: Floats | None) -> dict[str, float | None]:
    found = None if values_s is None else Spread.of(values_s)
    fields = {
        "mean": "mean",
        "median": "median",
        "std": "std",
        "p50": "median",
        "p90": "p90",
        "p95": "p95",
        "p99": "p99",
    }
    return {
        f"{stat}_{name}_ms": None if found is None else 1e3 * getattr(found, field)
        for stat, field in fields.items()
    }


def _total(values: Floats) -> int:
    return int(np.nansum(values))
