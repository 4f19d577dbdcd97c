"""What one engine has done so far, in the counts and histograms that vLLM keeps. Knows no names and no pages.

Times are whole nanoseconds, so that sums are exact. Bounds are vLLM's (vllm/v1/metrics/loggers.py; later versions add
0.1 and 0.2 s below `REQUEST_S`).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence

SECOND_NS = 1_000_000_000
FIRST_TOKEN_S = (
    0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0, 20.0, 40.0, 80.0,
    160.0, 640.0, 2560.0,
)  # fmt: skip
TOKEN_S = (
    0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0, 20.0, 40.0, 80.0,
)  # fmt: skip
REQUEST_S = (
    0.3, 0.5, 0.8, 1.0, 1.5, 2.0, 2.5, 5.0, 10.0, 15.0, 20.0, 30.0, 40.0, 50.0, 60.0, 120.0, 240.0, 480.0, 960.0,
    1920.0, 7680.0,
)  # fmt: skip
STEP_TOKENS = (1, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384)
CHOICES = (1, 2, 5, 10, 20)
REASONS = ("stop", "length", "abort", "error", "repetition")
"""Why requests end, in vLLM's words; the built-in engine knows the first three."""


class Histogram:
    """Counts of values up to each bound and above the last, and their sum."""

    __slots__ = ("_edges", "bounds", "counts", "per", "sum")

    def __init__(self, bounds: Sequence[float], per: int = 1) -> None:
        """`per`: how many of the values' unit make one of the bounds' (values in ns, bounds in s: 10^9)."""
        self.bounds = tuple(bounds)
        self.per = per
        self._edges = [round(bound * per) for bound in bounds]
        self.counts = [0] * (len(bounds) + 1)
        """Not cumulative; the last one is above every bound."""
        self.sum = 0

    def observe(self, value: int, times: int = 1) -> None:
        """Counts a value so many times; one equal to a bound belongs to it."""
        self.counts[bisect_left(self._edges, value)] += times
        self.sum += value * times

    @property
    def count(self) -> int:
        """How many values there were."""
        return sum(self.counts)


def one_two_five(longest: int) -> list[int]:
    """1, 2, 5, 10, 20, ... up to `longest`: vLLM's bounds for tokens of a request."""
    bounds = (digit * 10**exponent for exponent in range(len(str(max(longest, 1)))) for digit in (1, 2, 5))
    return [bound for bound in bounds if bound <= longest]


class Tally:
    """The counters and histograms of one engine. A request is counted when its last token is out."""

    def __init__(self, max_model_tokens: int, draft_tokens: int = 0) -> None:
        """`draft_tokens`: how many are drafted for a step of a sequence; 0: there is no speculation."""
        tokens = one_two_five(max_model_tokens)
        self.draft_tokens = draft_tokens
        self.drafts = 0
        """Steps of sequences in which tokens were drafted."""
        self.accepted = [0] * draft_tokens
        """Drafted tokens that came out, by their position in the draft."""
        self.prompt_tokens = 0
        """Of requests whose first token is out; tokens found in the cache included."""
        self.cached_tokens = 0
        self.generation_tokens = 0
        self.ended = dict.fromkeys(REASONS, 0)
        self.first_token = Histogram(FIRST_TOKEN_S, SECOND_NS)
        self.inter_token = Histogram(TOKEN_S, SECOND_NS)
        self.per_output_token = Histogram(TOKEN_S, SECOND_NS)
        self.latency = Histogram(REQUEST_S, SECOND_NS)
        self.queue = Histogram(REQUEST_S, SECOND_NS)
        self.prefill = Histogram(REQUEST_S, SECOND_NS)
        self.decode = Histogram(REQUEST_S, SECOND_NS)
        self.inference = Histogram(REQUEST_S, SECOND_NS)
        self.step_tokens = Histogram(STEP_TOKENS)
        self.request_prompt = Histogram(tokens)
        self.request_computed = Histogram(tokens)
        self.request_generation = Histogram(tokens)
        self.request_limit = Histogram(tokens)
        self.choices = Histogram(CHOICES)
        """Of every answer that was given to its end."""
        self.longest_choice = Histogram(tokens)

    def taken_in(self, prompt_tokens: int, cached_tokens: int) -> None:
        """A request's prompt is in."""
        self.prompt_tokens += prompt_tokens
        self.cached_tokens += cached_tokens

    def stepped(self, prompt_tokens: int, tokens: int, gaps_ns: Mapping[int, int]) -> None:
        """A step is over.

        `prompt_tokens` are those of the requests that got their first token, `tokens` all tokens that came out,
        `gaps_ns` how many came how long after the token before.
        """
        self.generation_tokens += tokens
        self.step_tokens.observe(prompt_tokens + tokens)
        for gap_ns, times in gaps_ns.items():
            self.inter_token.observe(gap_ns, times)

    def drafted(self, accepted: int) -> None:
        """A draft was made, and the first so many of its tokens came out."""
        self.drafts += 1
        for position in range(accepted):
            self.accepted[position] += 1

    def done(
        self,
        reason: str,
        *,
        latency_ns: int,
        queue_ns: int,
        prefill_ns: int,
        decode_ns: int,
        prompt_tokens: int,
        cached_tokens: int,
        tokens: int | None,
        limit_tokens: int,
    ) -> None:
        """A request's last token is out. `tokens`: those that were generated; None: none were to be."""
        self.end(reason)
        self.latency.observe(latency_ns)
        self.queue.observe(queue_ns)
        self.prefill.observe(prefill_ns)
        self.decode.observe(decode_ns)
        self.inference.observe(prefill_ns + decode_ns)
        if tokens is not None:
            self.per_output_token.observe(round(decode_ns / (tokens - 1)) if tokens > 1 else 0)
        self.request_prompt.observe(prompt_tokens)
        self.request_computed.observe(prompt_tokens - cached_tokens)
        self.request_generation.observe(tokens or 0)
        self.request_limit.observe(limit_tokens)

    def answered(self, choices: int, longest_tokens: int) -> None:
        """All choices of an answer are out, so many, and the longest of so many tokens."""
        self.choices.observe(choices)
        self.longest_choice.observe(longest_tokens)

    def end(self, reason: str) -> None:
        """A request ended for this reason in the API's words; one that vLLM's engine does not know counts as stop."""
        self.ended[reason if reason in self.ended else "stop"] += 1

    def left(self) -> None:
        """A request's client has left before its last token; it is in no histogram of requests."""
        self.ended["abort"] += 1
