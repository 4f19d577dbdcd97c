"""The page of /metrics: the true counts of every engine, under vLLM's names and labels, as Prometheus reads them.

The names are those of vLLM's production metrics; what the built-in engine has no counterpart of (LoRA, multi-modal
cache, sleep) is not on the page. Counts nothing itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from math import isinf
from typing import NamedTuple, Protocol

from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.metrics_core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from loadstone.sim.tally import Histogram, Tally

CONTENT_TYPE = b"text/plain; version=0.0.4; charset=utf-8"
LABELS = ("model_name", "engine")


class State(NamedTuple):
    """One engine at the moment of the scrape."""

    running: int
    waiting: int
    kv_usage: float
    """Share of the KV cache's blocks that sequences hold, 0 to 1."""
    prefix_queries: int
    prefix_hits: int
    preemptions: int


class Source(Protocol):
    """Where the page's numbers come from."""

    @property
    def tallies(self) -> Sequence[Tally]:
        """What each engine has done."""

    def states(self) -> Sequence[State]:
        """How each engine is now."""


GAUGES: tuple[tuple[str, str, Callable[[State], float]], ...] = (
    ("vllm:num_requests_running", "Requests in the batch.", lambda state: state.running),
    ("vllm:num_requests_waiting", "Requests that wait to be scheduled.", lambda state: state.waiting),
    (
        "vllm:kv_cache_usage_perc",
        "Share of the KV cache in use; 1 is all of it.",
        lambda state: state.kv_usage,
    ),
)
STATE_COUNTERS: tuple[tuple[str, str, Callable[[State], float]], ...] = (
    (
        "vllm:prefix_cache_queries",
        "Tokens looked up in the prefix cache.",
        lambda state: state.prefix_queries,
    ),
    ("vllm:prefix_cache_hits", "Tokens found in the prefix cache.", lambda state: state.prefix_hits),
    ("vllm:num_preemptions", "Times a sequence lost its KV cache blocks.", lambda state: state.preemptions),
)
COUNTERS: tuple[tuple[str, str, Callable[[Tally], float]], ...] = (
    (
        "vllm:prompt_tokens",
        "Prompt tokens of requests that got a first token.",
        lambda tally: tally.prompt_tokens,
    ),
    (
        "vllm:prompt_tokens_cached",
        "Those of them that were found in the prefix cache.",
        lambda tally: tally.cached_tokens,
    ),
    ("vllm:generation_tokens", "Output tokens.", lambda tally: tally.generation_tokens),
)
DRAFT_COUNTERS: tuple[tuple[str, str, Callable[[Tally], float]], ...] = (
    ("vllm:spec_decode_num_drafts", "Drafts.", lambda tally: tally.drafts),
    (
        "vllm:spec_decode_num_draft_tokens",
        "Tokens drafted.",
        lambda tally: tally.drafts * tally.draft_tokens,
    ),
    (
        "vllm:spec_decode_num_accepted_tokens",
        "Drafted tokens that were accepted.",
        lambda tally: sum(tally.accepted),
    ),
)
HISTOGRAMS: tuple[tuple[str, str, Callable[[Tally], Histogram]], ...] = (
    ("vllm:time_to_first_token_seconds", "Arrival to first token.", lambda tally: tally.first_token),
    ("vllm:inter_token_latency_seconds", "From one token to the next.", lambda tally: tally.inter_token),
    (
        "vllm:request_time_per_output_token_seconds",
        "First to last token, by the tokens after the first.",
        lambda tally: tally.per_output_token,
    ),
    ("vllm:e2e_request_latency_seconds", "Arrival to last token.", lambda tally: tally.latency),
    ("vllm:request_queue_time_seconds", "Arrival to first scheduled.", lambda tally: tally.queue),
    ("vllm:request_prefill_time_seconds", "First scheduled to first token.", lambda tally: tally.prefill),
    ("vllm:request_decode_time_seconds", "First token to last token.", lambda tally: tally.decode),
    ("vllm:request_inference_time_seconds", "First scheduled to last token.", lambda tally: tally.inference),
    ("vllm:iteration_tokens_total", "Tokens of a step.", lambda tally: tally.step_tokens),
    ("vllm:request_prompt_tokens", "Prompt tokens of a request.", lambda tally: tally.request_prompt),
    (
        "vllm:request_prefill_kv_computed_tokens",
        "Prompt tokens of a request that were not in the prefix cache.",
        lambda tally: tally.request_computed,
    ),
    (
        "vllm:request_generation_tokens",
        "Output tokens of a request.",
        lambda tally: tally.request_generation,
    ),
    (
        "vllm:request_params_max_tokens",
        "Longest answer a request allowed.",
        lambda tally: tally.request_limit,
    ),
)


class Page(Collector):
    """The page of one server."""

    def __init__(self, model: str, cache: Mapping[str, object], source: Source) -> None:
        """`model` is the name it is served under, `cache` what `vllm:cache_config_info` says."""
        self._model = model
        self._cache = {name: str(value) for name, value in cache.items()}
        self._source = source
        self._registry = CollectorRegistry()
        ProcessCollector(registry=self._registry)
        self._registry.register(self)

    def render(self) -> bytes:
        """The page now."""
        return generate_latest(self._registry)

    def describe(self) -> list[Metric]:
        """Nothing: names need not be known before the first scrape."""
        return []

    def collect(self) -> Iterator[Metric]:
        """Every family of the page."""
        states, tallies = self._source.states(), self._source.tallies
        labels = [(self._model, str(engine)) for engine in range(len(states))]
        for name, text, state_value in GAUGES:
            yield _filled(GaugeMetricFamily(name, text, labels=LABELS), labels, map(state_value, states))
        for name, text, state_value in STATE_COUNTERS:
            yield _filled(CounterMetricFamily(name, text, labels=LABELS), labels, map(state_value, states))
        for name, text, value in COUNTERS:
            yield _filled(CounterMetricFamily(name, text, labels=LABELS), labels, map(value, tallies))
        yield self._ended(labels, tallies)
        for name, text, histogram in HISTOGRAMS:
            yield _histogram(name, text, labels, [histogram(tally) for tally in tallies])
        yield from _drafts(labels, tallies)
        yield self._cache_config(len(states))

    def _ended(self, labels: Sequence[tuple[str, str]], tallies: Sequence[Tally]) -> Metric:
        family = CounterMetricFamily(
            "vllm:request_success", "Requests that ended, by why.", labels=(*LABELS, "finished_reason")
        )
        for names, tally in zip(labels, tallies, strict=True):
            for reason, count in tally.ended.items():
                family.add_metric((*names, reason), count)
        return family

    def _cache_config(self, engines: int) -> Metric:
        family = GaugeMetricFamily(
            "vllm:cache_config_info", "How the KV cache is set up.", labels=(*self._cache, "engine")
        )
        for engine in range(engines):
            family.add_metric((*self._cache.values(), str(engine)), 1)
        return family


def _drafts(labels: Sequence[tuple[str, str]], tallies: Sequence[Tally]) -> Iterator[Metric]:
    """What speculation did; nothing where there is none."""
    if not any(tally.draft_tokens for tally in tallies):
        return
    for name, text, value in DRAFT_COUNTERS:
        yield _filled(CounterMetricFamily(name, text, labels=LABELS), labels, map(value, tallies))
    family = CounterMetricFamily(
        "vllm:spec_decode_num_accepted_tokens_per_pos",
        "Drafted tokens that were accepted, by position in the draft.",
        labels=(*LABELS, "position"),
    )
    for names, tally in zip(labels, tallies, strict=True):
        for position, count in enumerate(tally.accepted):
            family.add_metric((*names, str(position)), count)
    yield family


def _filled(
    family: GaugeMetricFamily | CounterMetricFamily,
    labels: Sequence[tuple[str, str]],
    values: Iterator[float] | Sequence[float],
) -> Metric:
    for names, value in zip(labels, values, strict=True):
        family.add_metric(names, value)
    return family


def _histogram(
    name: str, text: str, labels: Sequence[tuple[str, str]], histograms: Sequence[Histogram]
) -> Metric:
    family = HistogramMetricFamily(name, text, labels=LABELS)
    for names, histogram in zip(labels, histograms, strict=True):
        total = 0
        buckets: list[tuple[str, float]] = []
        for bound, count in zip((*histogram.bounds, float("inf")), histogram.counts, strict=True):
            total += count
            buckets.append(("+Inf" if isinf(bound) else str(float(bound)), total))
        family.add_metric(names, buckets, histogram.sum / histogram.per)
    return family
