"""The line that `python -m sglang.bench_serving --output-file --output-details` appends, version 0.5.23.

Its inter-token latency of OpenAI endpoints pools gaps between chunks with text; its latency, and with it TPOT, ends with the
stream and not with the last token; `concurrency` is the sum of latencies / duration. Everything at once is the number Infinity
there, which Python writes and strict readers refuse, and here too. What has no value is null; texts are left out.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np

from loadstone.formats._requests import Requests, Spread, value
from loadstone.report import Report

SUMMARY = "line of SGLang's bench_serving, every request listed"
BACKENDS = {"chat": "sglang-oai-chat", "completions": "sglang-oai"}


def text(report: Report, folder: Path | None) -> str:
    """One line."""
    requests = Requests(folder)
    endpoint, load, source = (report.config.get(name, {}) for name in ("endpoint", "load", "input"))
    good = np.isfinite(requests.latency_s)
    inputs, outputs = requests.input_tokens[good], requests.output_tokens[good]
    duration_s = value(report, "benchmark_duration")
    gaps = requests.gaps_s
    pooled = np.array([gap for one in gaps for gap in one]) if gaps is not None else np.empty(0)
    chunks, under_way = requests.peaks()
    latencies_s = float(np.nansum(requests.until_done_s))
    told: dict[str, Any] = {
        "tag": None,
        "backend": BACKENDS.get(endpoint.get("type"), endpoint.get("type")),
        "dataset_name": "random",
        "request_rate": math.inf if load.get("request_rate") in (None, "inf") else load["request_rate"],
        "max_concurrency": load.get("concurrency"),
        "random_input_len": _whole(source.get("isl_mean")),
        "random_output_len": _whole(source.get("osl_mean")),
        "random_range_ratio": None if source.get("isl_stddev") or source.get("osl_stddev") else 1.0,
        "duration": duration_s,
        "completed": requests.completed,
        "total_input_tokens": int(np.nansum(inputs)),
        "total_input_text_tokens": int(np.nansum(inputs)),
        "total_input_vision_tokens": 0,
        "total_output_tokens": int(np.nansum(outputs)),
        "total_output_tokens_retokenized": None,
        "request_throughput": value(report, "request_throughput"),
        "input_throughput": value(report, "input_token_throughput"),
        "output_throughput": value(report, "output_token_throughput"),
        "total_throughput": value(report, "total_token_throughput"),
    }
    for name, values in (
        ("e2e_latency", requests.until_done_s),
        ("ttft", requests.ttft_s),
        ("tpot", requests.tpot_s(requests.until_done_s)),
        ("itl", pooled),
    ):
        found = Spread.of(values)
        told |= {
            f"{stat}_{name}_ms": None if found is None else 1e3 * getattr(found, stat)
            for stat in ("mean", "median", "std", "p90", "p95", "p99")
        }
    told |= {
        "concurrency": latencies_s / duration_s if duration_s else None,
        "max_output_tokens_per_s": chunks if gaps is not None else None,
        "max_concurrent_requests": under_way,
        "input_lens": requests.whole(requests.input_tokens),
        "output_lens": requests.whole(requests.output_tokens),
        "ttfts": requests.of(requests.ttft_s),
        "itls": gaps,
        "errors": requests.errors,
        "loadstone": {"version": report.loadstone_version, "certificate": report.certificate.verdict},
    }
    return json.dumps(told) + "\n"


def _whole(tokens: float | None) -> int | None:
    """A length that was asked for; None where it was no whole number, or none was asked."""
    return int(tokens) if tokens is not None and tokens == int(tokens) else None
