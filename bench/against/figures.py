"""What each program says of a run, and what the server knows of the same requests, by one set of names: ours.

A figure is told by a program where its files have it; which of their fields that is stands in `FIGURES`, so that the page can
say it. The truth of a run is worked out from the server's own instants of the requests that this program sent.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from bench.client import Run
from loadstone.sim.truth import TruthRow

MS = 1e6
STATS = {"mean": None, "p50": 50, "p99": 99}


class Figure(NamedTuple):
    """One row of the table."""

    name: str
    """Our metric."""
    stat: str
    unit: str
    aiperf: tuple[str, str] | None
    """The metric of `profile_export_aiperf.json` and its field."""
    vllm: str | None
    """The field of the result file; `{stat}` is filled in."""


def _latency(name: str, aiperf: str, vllm: str) -> list[Figure]:
    there = {"mean": "avg", "p50": "p50", "p99": "p99"}
    return [Figure(name, stat, "ms", (aiperf, there[stat]), f"{stat}_{vllm}_ms") for stat in STATS]


FIGURES = (
    *_latency("time_to_first_token", "time_to_first_token", "ttft"),
    *_latency("inter_token_latency", "inter_chunk_latency", "itl"),
    *_latency("time_per_output_token", "inter_token_latency", "tpot"),
    *_latency("request_latency", "request_latency", "e2el"),
    Figure("request_throughput", "mean", "requests/s", ("request_throughput", "avg"), "request_throughput"),
    Figure("output_token_throughput", "mean", "tokens/s", ("output_token_throughput", "avg"), "output_throughput"),
    Figure("peak_output_token_throughput", "mean", "tokens/s", ("effective_decode_throughput", "max"), "max_output_tokens_per_s"),
    Figure("concurrency", "mean", "requests", ("effective_concurrency", "avg"), None),
    Figure("peak_concurrency", "mean", "requests", ("effective_concurrency", "max"), "max_concurrent_requests"),
    Figure("error_rate", "mean", "%", ("request_error_rate", "avg"), None),
    Figure("benchmark_duration", "mean", "s", ("benchmark_duration", "avg"), "duration"),
    Figure("total_input_tokens", "mean", "tokens", ("total_isl", "avg"), "total_input_tokens"),
    Figure("total_output_tokens", "mean", "tokens", ("total_osl", "avg"), "total_output_tokens"),
)  # fmt: skip


class Request(NamedTuple):
    """What a program says of one request, ms; the tokens by its count."""

    ttft_ms: float
    latency_ms: float
    tokens: int


class Told(NamedTuple):
    """What a program says of a run."""

    figures: Mapping[str, float]
    """By `key`."""
    requests: Mapping[str, Request]
    """By the X-Request-ID that it sent."""
    verdict: list[str] = []
    """Its own word on whether this can be believed, where it has one."""


def key(figure: Figure) -> str:
    """Of a figure in a file."""
    return f"{figure.name}.{figure.stat}"


def told(tool: str, run: Run) -> Told:
    """What is in the files of this program."""
    return {"AIPerf": _aiperf, "vllm bench serve": _vllm, "loadstone": _loadstone}[tool](run)


def _aiperf(run: Run) -> Told:
    summary = json.loads((run.folder / "profile_export_aiperf.json").read_bytes())
    figures = {
        key(one): summary[one.aiperf[0]][one.aiperf[1]]
        for one in FIGURES
        if one.aiperf and one.aiperf[1] in summary.get(one.aiperf[0], {})
    }
    lines = (run.folder / "profile_export.jsonl").read_bytes().splitlines()
    requests = {}
    for record in map(json.loads, lines):
        metrics = record["metrics"]
        requests[record["metadata"]["x_request_id"]] = Request(
            *(
                metrics[name]["value"]
                for name in ("time_to_first_token", "request_latency", "output_sequence_length")
            )
        )
    return Told(figures, requests)


def _vllm(run: Run) -> Told:
    found = json.loads((run.folder / "result.json").read_bytes())
    figures = {key(one): found[one.vllm] for one in FIGURES if one.vllm and found.get(one.vllm) is not None}
    figures["error_rate.mean"] = 100 * found["failed"] / (found["failed"] + found["completed"])
    each = zip(found["ttfts"], found["latencies"], found["output_lens"], strict=True)
    requests = {
        f"{run.folder.name}-{place}": Request(1e3 * ttft, 1e3 * latency, tokens)
        for place, (ttft, latency, tokens) in enumerate(each)
    }
    return Told(figures, requests)


def _loadstone(run: Run) -> Told:
    report = run.report()
    metrics = report["metrics"]
    figures = {
        key(one): metrics[one.name][one.stat]
        for one in FIGURES
        if metrics.get(one.name, {}).get(one.stat) is not None
    }
    requests = {
        row["request_id"]: Request(
            (row["first_ns"] - row["sent_ns"]) / MS,
            (row["last_ns"] - row["sent_ns"]) / MS,
            row["output_tokens"],
        )
        for row in run.requests().to_dicts()
        if row["first_ns"] is not None
    }
    certificate = report["certificate"]
    return Told(figures, requests, [certificate["verdict"]])


def truth(rows: Sequence[TruthRow]) -> dict[str, float]:
    """The same figures from the server's instants: from the packet that completed a request to the sends of its tokens."""
    began = np.array([row.received_ns for row in rows], np.int64)
    tokens = [np.array(row.sent_ns, np.int64) for row in rows]
    first = np.array([one[0] for one in tokens])
    last = np.array([one[-1] for one in tokens])
    later = np.array([len(one) - 1 for one in tokens])
    span_s = (last.max() - began.min()) / 1e9
    found = {
        "time_to_first_token": first - began,
        "inter_token_latency": np.concatenate([np.diff(one) for one in tokens]),
        "time_per_output_token": (last - first) / later,
        "request_latency": last - began,
    }
    output, prompts = sum(row.tokens for row in rows), sum(row.prompt_tokens for row in rows)
    numbers = {
        "request_throughput": len(rows) / span_s,
        "output_token_throughput": output / span_s,
        "peak_output_token_throughput": _most_in_a_second(np.sort(np.concatenate(tokens))),
        "concurrency": float((last - began).sum()) / 1e9 / span_s,
        "peak_concurrency": _most_at_once(began, last),
        "error_rate": 100 * sum(row.end != "length" for row in rows) / len(rows),
        "benchmark_duration": span_s,
        "total_input_tokens": prompts,
        "total_output_tokens": output,
    }
    return {
        **{f"{name}.{stat}": _stat(values / MS, stat) for name, values in found.items() for stat in STATS},
        **{f"{name}.mean": float(value) for name, value in numbers.items()},
    }


def errors(said: Mapping[str, Request], rows: Iterable[TruthRow]) -> dict[str, float]:
    """By how much a program's times of one request are longer than the server's, ms: the median and the p99 over requests."""
    pairs = [(said[row.request_id], row) for row in rows]
    found = {
        "time_to_first_token": [
            one.ttft_ms - ((row.first_sent_ns or 0) - row.received_ns) / MS for one, row in pairs
        ],
        "request_latency": [
            one.latency_ms - ((row.last_sent_ns or 0) - row.received_ns) / MS for one, row in pairs
        ],
    }
    return {
        f"{name}.{stat}": _stat(np.array(values), stat)
        for name, values in found.items()
        for stat in ("p50", "p99")
    }


def _stat(values: Any, stat: str) -> float:
    quantile = STATS[stat]
    return float(np.mean(values) if quantile is None else np.percentile(values, quantile))


def _most_in_a_second(moments_ns: Any) -> int:
    ends = np.searchsorted(moments_ns, moments_ns + 1_000_000_000)
    return int((ends - np.arange(len(moments_ns))).max())


def _most_at_once(began_ns: Any, ended_ns: Any) -> int:
    moments = np.concatenate([began_ns, ended_ns])
    steps = np.concatenate([np.ones(len(began_ns), int), -np.ones(len(ended_ns), int)])
    return int(np.cumsum(steps[np.lexsort((steps, moments))]).max())
