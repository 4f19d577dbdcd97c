"""GuideLLM 0.8.1."""

from __future__ import annotations

from loadstone.metrics._namesakes._form import Namesake

_CLOCK = "its clock is the wall clock, which can be set while the run lasts, and is read when the client comes to it"

_FACTS = (
    (
        "time_to_first_token",
        "time_to_first_token_ms",
        "first delta of reasoning, content or tool call - writing of the request's head",
        _CLOCK,
    ),
    ("time_to_first_output_token", "ttfot", "the same of the first delta that is no reasoning", _CLOCK),
    (
        "inter_token_latency",
        "inter_token_latency_ms",
        "(last - first) / (n - 1), one value a request",
        "single gaps are not kept, tokens being taken to come evenly, so stalls cannot be seen; ours pools gaps",
    ),
    (
        "time_per_output_token",
        "inter_token_latency_ms",
        "(last - first) / (n - 1); its objective `tpot_ms` is held against this one",
        "",
    ),
    (
        "time_per_output_token",
        "time_per_output_token_ms",
        "(last token - start) / n",
        "the wait for the first token is in it: it is our normalized_latency",
    ),
    ("normalized_latency", "time_per_output_token_ms", "(last token - start) / n", _CLOCK),
    (
        "request_latency",
        "request_latency",
        "end of the stream ([DONE]) - start, in s",
        "ours ends with the last token",
    ),
    (
        "output_token_throughput",
        "output_tokens_per_second",
        "tokens of the requests of the benchmark's window / its length",
        "warm-up and cool-down are trimmed by requests, of which some reach over the edge",
    ),
    ("request_throughput", "requests_per_second", "requests of the window / its length", "likewise trimmed"),
    ("concurrency", "request_concurrency", "requests in flight, weighted by time", ""),
)

NAMESAKES = tuple(Namesake(ours, "GuideLLM", name, how, differs) for ours, name, how, differs in _FACTS)
