"""The page of /metrics: the true counts of every engine, under vLLM's names and labels, as Prometheus reads them.

The names are those of vLLM's production metrics; what the built-in engine has no counterpart of (LoRA, multi-modal
cache, sleep) is not on the page. Counts nothing itself. One rule: all that stays is written at the start, so that a scrape
is over before a step is late.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import accumulate
from typing import NamedTuple, Protocol

from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest

from loadstone.sim.tally import Histogram, Tally

CONTENT_TYPE = b"text/plain; version=0.0.4; charset=utf-8"


class State(NamedTuple):
    """One engine at the moment of the scrape."""

    running: int
    waiting: int
    kv_usage: float
    """Share of the KV cache's blocks that sequences hold, 0 to 1."""
    prefix_queries: int
    prefix_hits: int
    external_queries: int
    external_hits: int
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
    (
        "vllm:external_prefix_cache_queries",
        "Tokens whose keys and values were to come from another engine.",
        lambda state: state.external_queries,
    ),
    (
        "vllm:external_prefix_cache_hits",
        "Tokens whose keys and values came from another engine.",
        lambda state: state.external_hits,
    ),
    ("vllm:num_preemptions", "Times a sequence lost its KV cache blocks.", lambda state: state.preemptions),
)
COUNTERS: tuple[tuple[str, str, Callable[[Tally], float]], ...] = (
    (
        "vllm:prompt_tokens",
        "Prompt tokens of requests whose prompt was taken in.",
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
    ("vllm:request_params_n", "Choices of a request.", lambda tally: tally.choices),
    (
        "vllm:request_max_num_generation_tokens",
        "Output tokens of the longest choice of a request.",
        lambda tally: tally.longest_choice,
    ),
)


class Page:
    """The page of one server. Its engines are those that the source has when it is made."""

    def __init__(self, model: str, cache: Mapping[str, object], source: Source) -> None:
        """`model` is the name it is served under, `cache` what `vllm:cache_config_info` says."""
        self._source = source
        self._process = CollectorRegistry()
        ProcessCollector(registry=self._process)
        drafting = [tally for tally in source.tallies if tally.draft_tokens]
        self._counters = [value for _, _, value in COUNTERS]
        self._drafted = [value for _, _, value in DRAFT_COUNTERS] if drafting else []
        self._text = "".join(_lines(model, cache, source.tallies))
        """The whole page but for the process; a number is where it is filled in."""

    def render(self) -> bytes:
        """The page now."""
        states, tallies = self._source.states(), self._source.tallies
        values: list[float] = []
        for _, _, state_value in (*GAUGES, *STATE_COUNTERS):
            values += map(state_value, states)
        for value in self._counters:
            values += map(value, tallies)
        for tally in tallies:
            values += tally.ended.values()
        for _, _, histogram_of in HISTOGRAMS:
            for tally in tallies:
                histogram = histogram_of(tally)
                totals = [*accumulate(histogram.counts)]
                values += totals
                values += totals[-1], histogram.sum / histogram.per
        if self._drafted:
            drafting = [tally for tally in tallies if tally.draft_tokens]
            for value in self._drafted:
                values += map(value, drafting)
            for tally in drafting:
                values += tally.accepted
        return generate_latest(self._process) + (self._text % tuple(values)).encode()


Labels = Mapping[str, object]
COUNT = "%d.0"
SHARE = "%r"
"""Where a number is filled in: a count is spelt as a float, as Prometheus clients do."""


def _lines(model: str, cache: Mapping[str, object], tallies: Sequence[Tally]) -> Iterable[str]:
    """The lines of the page, with a place for each number, in the order in which `Page.render` fills them in."""
    own: list[Labels] = [{"model_name": model, "engine": engine} for engine in range(len(tallies))]
    for name, text, _ in GAUGES:
        place = SHARE if name.endswith("_perc") else COUNT
        yield _head(name, text, "gauge")
        yield from (_sample(name, labels, place) for labels in own)
    for name, text in [(name, text) for name, text, _ in STATE_COUNTERS] + [row[:2] for row in COUNTERS]:
        yield from _counter(name, text, own)
    pairs = list(zip(own, tallies, strict=True))
    ended = [{**labels, "finished_reason": why} for labels, tally in pairs for why in tally.ended]
    yield from _counter("vllm:request_success", "Requests that ended, by why.", ended)
    for name, text, histogram_of in HISTOGRAMS:
        yield _head(name, text, "histogram")
        for labels, tally in pairs:
            bounds = [str(float(bound)) for bound in histogram_of(tally).bounds]
            for bound in (*bounds, "+Inf"):
                yield _sample(f"{name}_bucket", {**labels, "le": bound}, COUNT)
            yield _sample(f"{name}_count", labels, COUNT)
            yield _sample(f"{name}_sum", labels, SHARE)
    yield from _draft_lines([(labels, tally.draft_tokens) for labels, tally in pairs if tally.draft_tokens])
    yield _head("vllm:cache_config_info", "How the KV cache is set up.", "gauge")
    for engine in range(len(tallies)):
        yield _sample("vllm:cache_config_info", {**cache, "engine": engine}, "1.0")


def _draft_lines(drafting: Sequence[tuple[Labels, int]]) -> Iterable[str]:
    """What speculation did, of engines that draft so many tokens; nothing where there are none."""
    if not drafting:
        return
    for name, text, _ in DRAFT_COUNTERS:
        yield from _counter(name, text, [labels for labels, _ in drafting])
    places = [{**labels, "position": at} for labels, tokens in drafting for at in range(tokens)]
    text = "Drafted tokens that were accepted, by position in the draft."
    yield from _counter("vllm:spec_decode_num_accepted_tokens_per_pos", text, places)


def _head(name: str, text: str, kind: str) -> str:
    return f"# HELP {name} {text}\n# TYPE {name} {kind}\n"


def _counter(name: str, text: str, each: Iterable[Labels]) -> Iterable[str]:
    yield _head(f"{name}_total", text, "counter")
    yield from (_sample(f"{name}_total", labels, COUNT) for labels in each)


def _sample(name: str, labels: Labels, place: str) -> str:
    """A line. What fills in numbers takes nothing in the labels for a place of one."""
    told = ",".join(f'{label}="{_escaped(str(value))}"' for label, value in sorted(labels.items()))
    return f"{name}{{{told}}} {place}\n"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"').replace("%", "%%")
