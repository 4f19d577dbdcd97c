"""Whose metrics a page has, and what they are called there: the few that mean the same for every engine.

Names: vLLM docs/usage/metrics, SGLang docs/references/production_metrics (`--enable-metrics`), llama.cpp tools/server
README (`--metrics`). Where a name has changed all its names are listed, the present one first; the first found is taken.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal, NamedTuple

Name = Literal["vllm", "sglang", "llama.cpp"]


class Names(NamedTuple):
    """The samples of one engine; empty where it has none of that meaning."""

    prefix: str
    running: tuple[str, ...]
    waiting: tuple[str, ...]
    kv_cache_usage: tuple[str, ...]
    looked_up: tuple[str, ...]
    """Prompt tokens that were looked up in the prefix cache,"""
    found: tuple[str, ...]
    """and those of them that were there."""
    preemptions: tuple[str, ...]
    prompt_tokens: tuple[str, ...]
    generation_tokens: tuple[str, ...]
    time_to_first_token: tuple[str, ...]
    """Histograms in seconds, by their families: from a request's arrival to its first token,"""
    inter_token_latency: tuple[str, ...]
    """and from one token to the next."""
    drafts: tuple[str, ...] = ()
    """Speculative decoding: drafts that were checked, one a sequence and step,"""
    draft_tokens: tuple[str, ...] = ()
    """their tokens,"""
    draft_accepted: tuple[str, ...] = ()
    """those of them that were accepted,"""
    accepted_at: tuple[str, ...] = ()
    """and the same for each `position` in a draft."""
    accept_length: tuple[str, ...] = ()
    """A gauge where there are no such counters: tokens that a step brought."""


ENGINES: Mapping[Name, Names] = {
    "vllm": Names(
        prefix="vllm:",
        running=("vllm:num_requests_running",),
        waiting=("vllm:num_requests_waiting",),
        kv_cache_usage=("vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc"),
        looked_up=("vllm:prefix_cache_queries_total", "vllm:gpu_prefix_cache_queries_total"),
        found=("vllm:prefix_cache_hits_total", "vllm:gpu_prefix_cache_hits_total"),
        preemptions=("vllm:num_preemptions_total",),
        prompt_tokens=("vllm:prompt_tokens_total",),
        generation_tokens=("vllm:generation_tokens_total",),
        time_to_first_token=("vllm:time_to_first_token_seconds",),
        inter_token_latency=("vllm:inter_token_latency_seconds", "vllm:time_per_output_token_seconds"),
        drafts=("vllm:spec_decode_num_drafts_total",),
        draft_tokens=("vllm:spec_decode_num_draft_tokens_total",),
        draft_accepted=("vllm:spec_decode_num_accepted_tokens_total",),
        accepted_at=("vllm:spec_decode_num_accepted_tokens_per_pos_total",),
    ),
    "sglang": Names(
        prefix="sglang:",
        running=("sglang:num_running_reqs",),
        waiting=("sglang:num_queue_reqs",),
        kv_cache_usage=("sglang:token_usage",),
        looked_up=("sglang:prompt_tokens_total",),
        found=("sglang:cached_tokens_total",),
        preemptions=("sglang:num_retracted_requests_total",),
        prompt_tokens=("sglang:prompt_tokens_total",),
        generation_tokens=("sglang:generation_tokens_total",),
        time_to_first_token=("sglang:time_to_first_token_seconds",),
        inter_token_latency=("sglang:inter_token_latency_seconds",),
        accept_length=("sglang:spec_accept_length",),
    ),
    "llama.cpp": Names(
        prefix="llamacpp:",
        running=("llamacpp:requests_processing",),
        waiting=("llamacpp:requests_deferred",),
        kv_cache_usage=("llamacpp:kv_cache_usage_ratio",),
        looked_up=(),
        found=(),
        preemptions=(),
        prompt_tokens=("llamacpp:prompt_tokens_total",),
        generation_tokens=("llamacpp:tokens_predicted_total",),
        time_to_first_token=(),
        inter_token_latency=(),
    ),
}


def engine_of(samples: set[str]) -> Name | None:
    """Whose metrics these are; None: nobody's that we know."""
    return next(
        (name for name, names in ENGINES.items() if any(one.startswith(names.prefix) for one in samples)),
        None,
    )


RANKS = ("pp_rank", "tp_rank", "moe_ep_rank")
"""Labels of devices that work on the same requests; `dp_rank` and `engine` have requests of their own."""


def told_once(series: Iterable[Mapping[str, str]]) -> list[int]:
    """Which of these labels of one sample to count, by their places: every request once, and none twice.

    SGLang tells the same again by priority, and with `--enable-metrics-for-all-schedulers` by every rank: of ranks that
    differ in nothing else the first is taken. With attention in data parallel the ranks of each `dp_rank` are others.
    """
    first: dict[tuple[tuple[str, str], ...], tuple[list[tuple[int, str]], int]] = {}
    for place, labels in enumerate(series):
        if labels.get("priority"):
            continue
        shared = tuple(sorted(pair for pair in labels.items() if pair[0] not in RANKS))
        ranks = [(len(rank), rank) for rank in (labels.get(name, "") for name in RANKS)]  # "2" before "10"
        first[shared] = min(first.get(shared, (ranks, place)), (ranks, place))
    return sorted(place for _, place in first.values())
