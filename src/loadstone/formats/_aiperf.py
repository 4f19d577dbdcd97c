"""Which metrics AIPerf and we both have, under which names. Facts of AIPerf 0.13.0's `profile_export_aiperf` files.

One rule: only what is computed by the same formula. Its inter_token_latency is the mean gap of one request over
(tokens - 1), which is our time_per_output_token; ours of that name has no counterpart there. Its inter_chunk_latency
pools gaps between chunks as they come, which is a list we do not keep. Its effective_latency begins when a request was issued
and ours when it was due; its phases of HTTP count connecting twice, and those of kept-alive connections as 0; its throughputs
over time spread tokens over every gap. None of these is here.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from loadstone.report import MetricResult, Report

STATS = ("p1", "p5", "p10", "p25", "p50", "p75", "p90", "p95", "p99")


class Tag(NamedTuple):
    """One of AIPerf's metrics: its tag, the title in its CSV, its unit, our metric, and what ours is multiplied by."""

    tag: str
    title: str
    unit: str
    ours: str
    scale: float = 1.0
    over_time: bool = False
    """Weighted by time: it then has neither count nor sum, and fewer percentiles."""


DISTRIBUTIONS = (
    Tag("request_latency", "Request Latency", "ms", "request_latency"),
    Tag("time_to_first_token", "Time to First Token", "ms", "time_to_first_token"),
    Tag("time_to_first_output_token", "Time to First Output Token", "ms", "time_to_first_output_token"),
    Tag("time_to_second_token", "Time to Second Token", "ms", "time_to_second_token"),
    Tag("inter_token_latency", "Inter Token Latency", "ms", "time_per_output_token"),
    Tag("decode_duration", "Decode Duration", "ms", "decode_duration"),
    Tag("output_token_throughput_per_user", "Output Token Throughput Per User", "tokens/sec/user", "output_token_throughput_per_user"),
    Tag("e2e_output_token_throughput", "E2E Output Token Throughput", "tokens/sec/user", "e2e_output_token_throughput"),
    Tag("prefill_throughput_per_user", "Prefill Throughput Per User", "tokens/sec/user", "prefill_throughput_per_user"),
    Tag("output_sequence_length", "Output Sequence Length", "tokens", "output_sequence_length"),
    Tag("output_token_count", "Output Token Count", "tokens", "output_token_count"),
    Tag("reasoning_token_count", "Reasoning Token Count", "tokens", "reasoning_token_count"),
    Tag("input_sequence_length", "Input Sequence Length", "tokens", "input_sequence_length"),
    Tag("osl_mismatch_diff_pct", "OSL Mismatch Diff %", "%", "output_length_mismatch"),
    Tag("usage_prompt_tokens", "Usage Prompt Tokens", "tokens", "usage_prompt_tokens"),
    Tag("usage_completion_tokens", "Usage Completion Tokens", "tokens", "usage_completion_tokens"),
    Tag("usage_reasoning_tokens", "Usage Reasoning Tokens", "tokens", "reasoning_token_count"),
    Tag("usage_total_tokens", "Usage Total Tokens", "tokens", "usage_total_tokens"),
    Tag("usage_prompt_cache_read_tokens", "Usage Prompt Cache Read Tokens", "tokens", "usage_prompt_cache_read_tokens"),
    Tag("effective_concurrency", "Effective Concurrency", "requests", "concurrency", over_time=True),
    Tag("effective_prefill_concurrency", "Effective Prefill Concurrency", "requests", "effective_prefill_concurrency", over_time=True),
    Tag("effective_decode_concurrency", "Effective Decode Concurrency", "requests", "effective_decode_concurrency", over_time=True),
    Tag("tokens_in_flight", "Tokens In Flight", "tokens", "tokens_in_flight", over_time=True),
)  # fmt: skip
NUMBERS = (
    Tag("request_throughput", "Request Throughput", "requests/sec", "request_throughput"),
    Tag("request_count", "Request Count", "requests", "request_count"),
    Tag("error_request_count", "Error Request Count", "requests", "error_request_count"),
    Tag("request_error_rate", "Request Error Rate", "%", "error_rate"),
    Tag("output_token_throughput", "Output Token Throughput", "tokens/sec", "output_token_throughput"),
    Tag("input_token_throughput", "Input Token Throughput", "tokens/sec", "input_token_throughput"),
    Tag("total_token_throughput", "Total Token Throughput", "tokens/sec", "total_token_throughput"),
    Tag("goodput", "Goodput", "requests/sec", "goodput"),
    Tag("good_request_count", "Good Request Count", "requests", "good_request_count"),
    Tag("good_request_fraction", "GoodRequestFraction", "ratio", "goodput_attainment", 0.01),
    Tag("osl_mismatch_count", "OSL Mismatch Count", "requests", "output_length_mismatch_count"),
    Tag("benchmark_duration", "Benchmark Duration", "sec", "benchmark_duration"),
    Tag("total_isl", "Total Input Sequence Length", "tokens", "total_input_tokens"),
    Tag("total_osl", "Total Output Sequence Length", "tokens", "total_output_tokens"),
)
UNITLESS = {"requests"}
"""Units that its CSV does not name."""


def found(report: Report, tags: tuple[Tag, ...]) -> Iterator[tuple[Tag, MetricResult]]:
    """The metrics that this report has a value for."""
    for tag in tags:
        result = report.metrics.get(tag.ours)
        if result is not None and result.mean is not None:
            yield tag, result


def statistics(tag: Tag, result: MetricResult) -> dict[str, float | int]:
    """The fields of one distribution, without its unit, in AIPerf's order."""
    percentiles = {stat: getattr(result, stat) for stat in STATS}
    ends = {"min": result.min, "max": result.max, "std": result.std}
    if tag.over_time:
        percentiles = {stat: percentiles[stat] for stat in ("p50", "p90", "p95", "p99")}
    numbers = {"avg": result.mean, **percentiles, **ends}
    told: dict[str, float | int] = {
        name: value * tag.scale for name, value in numbers.items() if value is not None
    }
    if not tag.over_time and result.mean is not None:
        told |= {"count": result.count, "sum": result.mean * tag.scale * result.count}
    return told
