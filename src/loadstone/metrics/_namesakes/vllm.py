"""`vllm bench serve` of vLLM 0.32."""

from __future__ import annotations

from loadstone.metrics._namesakes._form import Namesake

_READ = (
    "stamps are taken after the event was parsed, by one thread that serves all streams: a busy client is inside the"
    " number; with --max-concurrency the wait for a slot is not"
)
_WINDOW = "its duration starts before the first arrival and ends when its tasks are gathered"

_FACTS = (
    (
        "time_to_first_token",
        "ttft",
        "first event that has `choices` - send, even when its text is empty",
        f"an event of a role alone counts as the first token; {_READ}",
    ),
    (
        "inter_token_latency",
        "itl",
        "gaps between chunks, pooled over all requests",
        "a gap is not divided by the tokens its chunk brought, so with several a chunk (speculative decoding, a slow"
        " client) it is too long and events of one read add gaps near 0, as do those of a role or a finish reason alone",
    ),
    (
        "time_per_output_token",
        "tpot",
        "(latency - ttft) / (n - 1) for n > 1 tokens by the server's usage",
        "for its goodput a request of one token has a tpot of 0, which is always met; for us it has none",
    ),
    ("request_latency", "e2el latency", "last chunk that bears tokens - send", _READ),
    (
        "request_latency_from_due",
        "e2el_including_client_queue",
        "the same from the arrival",
        "shown with a finite rate; of the first token there is none from arrival",
    ),
    ("queue_wait", "client_queue_time", "send - arrival", ""),
    ("request_throughput", "request_throughput", "completed / duration", _WINDOW),
    ("output_token_throughput", "output_throughput", "output tokens / duration, successes only", _WINDOW),
    ("total_token_throughput", "total_token_throughput", "(input + output tokens) / duration", _WINDOW),
    (
        "goodput",
        "request_goodput",
        "successes with every given metric <= its limit / duration; ttft, tpot and e2el in ms",
        "there is no share of all requests (goodput_attainment)",
    ),
    (
        "peak_output_token_throughput",
        "max_output_tokens_per_s",
        "the most chunks in a bin of 1 s from the first send on",
        "it counts chunks, so where they hold several tokens the peak can lie below the mean",
    ),
    (
        "peak_concurrency",
        "max_concurrent_requests",
        "the most requests that touch one bin of 1 s",
        "requests that followed each other within the second count together: with a limit of 8 it showed 23",
    ),
    (
        "acceptance_length_pooled",
        "spec_decode_acceptance_length",
        "1 + accepted / drafts, growth of the server's counters over the run",
        "whoever else asks the server meanwhile is in it; ours is from the answers, and the counters are in the report's"
        " `server`",
    ),
    (
        "draft_acceptance_rate_pooled",
        "spec_decode_acceptance_rate",
        "100 accepted / drafted tokens, likewise",
        "likewise",
    ),
    ("audio_throughput", "rtfx", "seconds of sound / duration", ""),
    ("benchmark_duration", "duration", "before the first arrival until all tasks are gathered", ""),
    ("request_count", "completed", "successes", ""),
    ("error_request_count", "failed", "requests that failed", ""),
    (
        "total_input_tokens",
        "total_input_tokens",
        "length in the data set, overwritten by the server's usage where it tells",
        "",
    ),
    ("total_output_tokens", "total_output_tokens", "usage, else the text by its tokenizer", ""),
)

NAMESAKES = tuple(
    Namesake(ours, "vLLM bench serve", name, how, differs) for ours, name, how, differs in _FACTS
)
