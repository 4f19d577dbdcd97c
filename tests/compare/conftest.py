"""Sides made by hand, and files as other tools write them."""

from __future__ import annotations

import json

import numpy as np
import pytest

from loadstone.compare.importers._numbers import of_requests
from loadstone.compare.importers._pace import pace
from loadstone.compare.sides import Requests, Run, Side


@pytest.fixture
def requests():
    """Requests whose times to first token are given; answers take ten times as long and have 10 tokens."""

    def make(ttft, *, failed=(), gap_s=0.1, keys=True, **more):
        ttft = np.asarray(ttft, float)
        count = len(ttft)
        bad = np.isin(np.arange(count), failed)
        sent = np.arange(count) * gap_s
        latency = 10 * ttft
        return Requests(
            sent_s=sent,
            succeeded=~bad,
            failed=bad,
            latencies={
                "time_to_first_token": np.where(bad, np.nan, ttft),
                "request_latency": np.where(bad, np.nan, latency),
            },
            output_tokens=np.full(count, 10.0),
            input_tokens=np.full(count, 100.0),
            keys=np.arange(count) if keys else None,
            pace=pace(sent, sent + latency / 1000),
            prompts=np.arange(count) if keys else None,
        )._replace(**more)

    return make


@pytest.fixture
def run(requests):
    """A run of loadstone with these times to first token; keywords go to `Run`."""

    def make(ttft=(10.0, 12.0), *, path="run", failed=(), of=None, **more):
        found = requests(ttft, failed=failed) if of is None else of
        facts = {"path": path, "tool": "loadstone 1", "asked": {}, **more}
        return Run(numbers=of_requests(found), requests=found, **facts)

    return make


@pytest.fixture
def side(run):
    """A side of one run; keywords as for `run`."""

    def make(name, *values, **more):
        return Side(name, (run(*values, **more),))

    return make


@pytest.fixture
def written(tmp_path):
    """A file with a JSON value, or with lines of several."""

    def write(name, *values):
        path = tmp_path / name
        path.write_text("\n".join(json.dumps(value) for value in values))
        return path

    return write


VLLM = {
    "date": "20261130-101010",
    "endpoint_type": "openai-chat",
    "backend": "openai-chat",
    "label": None,
    "model_id": "m",
    "tokenizer_id": "m",
    "num_prompts": 3,
    "request_rate": 5.0,
    "burstiness": 1.0,
    "max_concurrency": None,
    "duration": 2.0,
    "completed": 2,
    "failed": 1,
    "total_input_tokens": 200,
    "total_output_tokens": 7,
    "request_throughput": 1.0,
    "request_goodput": None,
    "output_throughput": 3.5,
    "total_token_throughput": 103.5,
    "mean_ttft_ms": 30.0,
    "median_ttft_ms": 30.0,
    "p99_ttft_ms": 39.8,
    "mean_tpot_ms": 10.0,
    "mean_itl_ms": 12.0,
    "median_itl_ms": 11.0,
}
"""Two successes and a failure, as `vllm bench serve --save-result` has them."""

VLLM_DETAILS = {
    "input_lens": [100, 100, 100],
    "output_lens": [4, 3, 0],
    "ttfts": [0.020, 0.040, 0.0],
    "itls": [[0.010, 0.010, 0.010], [0.010, 0.020], []],
    "start_times": [100.0, 100.5, 101.0],
    "generated_texts": ["a", "b", ""],
    "errors": ["", "", "refused"],
}

SGLANG = {
    "backend": "sglang",
    "dataset_name": "random",
    "request_rate": 4.0,
    "max_concurrency": 8,
    "random_input_len": 1024,
    "random_output_len": 128,
    "random_range_ratio": 0.5,
    "duration": 2.0,
    "completed": 2,
    "total_input_tokens": 200,
    "total_output_tokens": 7,
    "request_throughput": 1.0,
    "input_throughput": 100.0,
    "output_throughput": 3.5,
    "total_throughput": 103.5,
    "mean_e2e_latency_ms": 60.0,
    "median_e2e_latency_ms": 60.0,
    "p99_e2e_latency_ms": 70.0,
    "mean_ttft_ms": 30.0,
    "median_ttft_ms": 30.0,
    "p99_ttft_ms": 40.0,
    "mean_tpot_ms": 10.0,
    "mean_itl_ms": 12.0,
}

AIPERF = {
    "schema_version": "1.4",
    "aiperf_version": "0.13.0",
    "benchmark_id": "b",
    "time_to_first_token": {"unit": "ms", "avg": 30.0, "p50": 29.0, "p90": 38.0, "p99": 40.0, "count": 2},
    "inter_token_latency": {"unit": "ms", "avg": 10.0, "p50": 10.0},
    "inter_chunk_latency": {"unit": "ms", "avg": 11.0},
    "request_latency": {"unit": "ms", "avg": 60.0},
    "request_throughput": {"unit": "requests/sec", "avg": 1.5},
    "output_token_throughput": {"unit": "tokens/sec", "avg": 3.5},
    "request_error_rate": {"unit": "%", "avg": 25.0},
    "input_config": {
        "models": {"items": [{"name": "m"}]},
        "endpoint": {
            "urls": ["http://h:1"],
            "type": "chat",
            "streaming": True,
            "extra": {"ignore_eos": True},
        },
        "datasets": [
            {
                "name": "main",
                "type": "synthetic",
                "entries": 40,
                "random_seed": 7,
                "prompts": {"isl": {"mean": 550.0, "stddev": 0.0}},
            }
        ],
        "phases": [
            {
                "name": "profiling",
                "kind": "profiling",
                "type": "concurrency",
                "requests": 100,
                "concurrency": 4,
            }
        ],
        "tokenizer": {"name": "t"},
    },
    "is_complete": True,
}


def aiperf_record(number, *, phase="profiling", ttft=20.0, latency=60.0, error=None, chunks=(10.0, 30.0)):
    """One line of `profile_export.jsonl`."""
    start = 1_700_000_000_000_000_000 + number * 100_000_000
    metrics = {
        "time_to_first_token": {"value": ttft, "unit": "ms"},
        "inter_token_latency": {"value": 20.0, "unit": "ms"},
        "inter_chunk_latency": {"value": list(chunks), "unit": "ms"},
        "request_latency": {"value": latency, "unit": "ms"},
        "output_sequence_length": {"value": 3, "unit": "tokens"},
        "input_sequence_length": {"value": 100, "unit": "tokens"},
    }
    return {
        "metadata": {
            "session_num": number,
            "conversation_id": f"c{number}",
            "turn_index": 0,
            "request_start_ns": start,
            "request_end_ns": start + int(latency * 1e6),
            "benchmark_phase": phase,
            "was_cancelled": False,
        },
        "metrics": {"error_isl": {"value": 100, "unit": "tokens"}} if error else metrics,
        "error": error,
    }


def guidellm(count=2, benchmarks=1):
    """A report of GuideLLM 0.8.1, with what is read of it."""

    def summary(mean, p50=None):
        percentiles = {"p50": p50 or mean, "p90": mean, "p99": mean}
        there = {"mean": mean, "median": mean, "count": count, "percentiles": percentiles}
        nobody = {"mean": 0.0, "median": 0.0, "count": 0, "percentiles": dict.fromkeys(percentiles, 0.0)}
        return {"successful": there, "errored": nobody, "incomplete": nobody, "total": there}

    request = {
        "request_start_time": 1000.0,
        "request_end_time": 1000.5,
        "request_latency": 0.5,
        "time_to_first_token_ms": 30.0,
        "inter_token_latency_ms": 10.0,
        "time_per_output_token_ms": 12.5,
        "output_tokens": 40,
        "prompt_tokens": 100,
    }
    one = {
        "config": {"strategy": {"type_": "constant", "rate": 5.0}},
        "metrics": {
            "request_totals": {"successful": count, "errored": 1, "incomplete": 0, "total": count + 1},
            "time_to_first_token_ms": summary(30.0),
            "inter_token_latency_ms": summary(10.0),
            "time_per_output_token_ms": summary(12.5),
            "request_latency": summary(0.5, 0.4),
            "requests_per_second": summary(4.0),
            "output_tokens_per_second": summary(160.0),
        },
        "requests": {
            "successful": [{**request, "request_start_time": 1000.0 + at} for at in range(count)],
            "errored": [
                {"request_start_time": 1003.0, "request_end_time": 1003.1, "time_to_first_token_ms": None}
            ],
            "incomplete": [],
        },
    }
    return {
        "metadata": {"version": 2, "guidellm_version": "0.8.1", "platform": "p"},
        "benchmarks": [one] * benchmarks,
    }
