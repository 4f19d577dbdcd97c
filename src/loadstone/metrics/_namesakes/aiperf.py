"""AIPerf 0.13.0: latencies, lengths, rates, counts, levels over time."""

from __future__ import annotations

from loadstone.metrics._namesakes._form import Namesake

_CLOCK = (
    "its clock starts before there is a connection (waiting for one, DNS, TCP and TLS are inside) and stops when its"
    " worker came to read the token; ours starts at the first byte sent and takes the kernel's stamp of the arrival"
)
_WINDOW = "its duration is that of the valid requests alone, so a run that ends in failures is given a shorter window"
_TOKENS = "its own tokenizer's count unless --use-server-token-count; ours is the server's where it tells"
_STEPS = (
    "it spreads an answer's tokens over each gap, so a chunk of many tokens behind a short gap makes a maximum that no"
    " server reached; ours are in steps of 10 ms"
)
_INFINITE = "it leaves infinite statistics out of its files and shows N/A; we name them as infinite"

_FACTS: tuple[tuple[str, str, str, str], ...] = (
    (
        "time_to_first_token",
        "time_to_first_token",
        "first chunk with content, reasoning included - start",
        _CLOCK,
    ),
    (
        "time_to_first_output_token",
        "time_to_first_output_token",
        "first chunk with text that is no reasoning, or a tool call - start",
        _CLOCK,
    ),
    (
        "time_to_second_token",
        "time_to_second_token",
        "second chunk with content - first",
        "two chunks that one read brought have the same stamp and give 0; for us they are one instant",
    ),
    (
        "inter_token_latency",
        "inter_token_latency",
        "(request_latency - TTFT) / (OSL - 1), one value a request",
        "a mean of means: an answer of 10 tokens weighs as much as one of 1,000, and no single gap is seen; ours pools"
        " gaps. Its number is our time_per_output_token",
    ),
    (
        "inter_token_latency",
        "inter_chunk_latency",
        "all gaps between chunks with content, pooled",
        "a gap is not divided by the tokens that the chunk brought, and two chunks of one read are a gap of 0",
    ),
    (
        "time_per_output_token",
        "inter_token_latency",
        "(request_latency - TTFT) / (OSL - k); k is 1, or the tokens of the first chunk with --per-chunk-usage",
        "",
    ),
    (
        "time_per_output_token_corrected",
        "inter_token_latency",
        "(request_latency - TTFT) / (OSL - k), k being the tokens of the first chunk, with --per-chunk-usage",
        "without that option k is 1, and tokens that came with the first make it too low",
    ),
    ("decode_duration", "decode_duration", "request_latency - TTFT", ""),
    ("request_latency", "request_latency", "last chunk with content - start", _CLOCK),
    (
        "request_latency_from_due",
        "effective_latency",
        "end - the moment the request was issued",
        "at a rate with a limit, arrivals that found no slot are skipped there and appear in no latency; ours counts"
        " from the planned moment of every request",
    ),
    (
        "send_lag",
        "credit_to_start_latency",
        "start - the moment the request was issued",
        "ours counts from the planned moment",
    ),
    (
        "adjusted_request_latency",
        "adj_request_latency",
        "failed requests added as infinite, nearest rank",
        _INFINITE,
    ),
    ("adjusted_time_to_first_token", "adj_time_to_first_token", "the same of time_to_first_token", _INFINITE),
    ("adjusted_decode_duration", "adj_decode_duration", "the same of decode_duration", _INFINITE),
    ("adjusted_inter_token_latency", "adj_inter_token_latency", "the same of inter_token_latency", _INFINITE),
    (
        "output_token_throughput_per_user",
        "output_token_throughput_per_user",
        "1 / inter_token_latency, one value a request",
        "",
    ),
    ("e2e_output_token_throughput", "e2e_output_token_throughput", "OSL / request_latency", _CLOCK),
    ("prefill_throughput_per_user", "prefill_throughput_per_user", "ISL / TTFT", _CLOCK),
    ("output_sequence_length", "output_sequence_length", "output and reasoning tokens", _TOKENS),
    ("output_token_count", "output_token_count", "tokens that are no reasoning", _TOKENS),
    ("reasoning_token_count", "reasoning_token_count", "reasoning tokens", _TOKENS),
    (
        "input_sequence_length",
        "input_sequence_length",
        "tokens of the prompt's text by its own tokenizer",
        "without the chat template unless --apply-chat-template; the server's usage, which we take, has it",
    ),
    ("failed_input_sequence_length", "error_isl", "ISL of failed requests", ""),
    ("total_input_tokens", "total_isl", "sum of ISL", ""),
    ("total_output_tokens", "total_osl", "sum of OSL", ""),
    ("output_length_mismatch", "osl_mismatch_diff_pct", "100 (OSL - asked) / asked", ""),
    (
        "output_length_mismatch_count",
        "osl_mismatch_count",
        "requests off by more than the lesser of 5 % of the length asked for and 50 tokens",
        "",
    ),
    ("benchmark_duration", "benchmark_duration", "first start to the last end of valid requests", _WINDOW),
    ("request_count", "request_count", "valid requests", ""),
    ("error_request_count", "error_request_count", "failed requests", ""),
    (
        "error_rate",
        "request_error_rate",
        "100 errors / (valid + errors)",
        "requests cancelled as planned are errors there",
    ),
    ("context_overflow_count", "context_overflow_count", "errors whose text has one of four phrases", ""),
    ("request_throughput", "request_throughput", "valid requests / duration", _WINDOW),
    ("output_token_throughput", "output_token_throughput", "total OSL / duration", _WINDOW),
    ("input_token_throughput", "input_token_throughput", "total ISL / duration", _WINDOW),
    ("total_token_throughput", "total_token_throughput", "(total ISL + total OSL) / duration", _WINDOW),
    ("goodput", "goodput", "valid requests that meet all objectives / duration", _WINDOW),
    ("good_request_count", "good_request_count", "valid requests that meet all objectives", ""),
    ("goodput_attainment", "good_request_fraction", "good / (valid + errors), 0 to 1", "ours is in percent"),
    ("concurrency", "effective_concurrency", "requests in [start, end), weighted by time", ""),
    ("active_concurrency", "active_concurrency", "the same while there was at least one", ""),
    (
        "effective_prefill_concurrency",
        "effective_prefill_concurrency",
        "requests in [start, first token), weighted by time",
        "",
    ),
    (
        "effective_decode_concurrency",
        "effective_decode_concurrency",
        "requests in [first token, end), weighted by time",
        "",
    ),
    (
        "effective_prefill_throughput",
        "effective_prefill_throughput",
        "ISL / TTFT of all in prefill, added up",
        _STEPS,
    ),
    (
        "effective_decode_throughput",
        "effective_decode_throughput",
        "each gap's tokens over the gap, added up",
        _STEPS,
    ),
    ("effective_total_throughput", "effective_total_throughput", "the sum of the two", _STEPS),
    (
        "active_prefill_concurrency",
        "active_prefill_concurrency",
        "the same while somebody was in prefill",
        "",
    ),
    ("active_decode_concurrency", "active_decode_concurrency", "the same while somebody was in decode", ""),
    (
        "active_prefill_throughput",
        "active_prefill_throughput",
        "the same while somebody was in prefill",
        _STEPS,
    ),
    ("active_decode_throughput", "active_decode_throughput", "the same while somebody was in decode", _STEPS),
    ("active_total_throughput", "active_total_throughput", "the same while anybody was there", _STEPS),
    (
        "effective_prefill_throughput_per_user",
        "effective_prefill_throughput_per_user",
        "by the number in prefill, 0 when idle",
        _STEPS,
    ),
    (
        "effective_decode_throughput_per_user",
        "effective_decode_throughput_per_user",
        "by the number in decode, 0 when idle",
        _STEPS,
    ),
    (
        "effective_total_throughput_per_user",
        "effective_total_throughput_per_user",
        "by the number in flight, 0 when idle",
        _STEPS,
    ),
    ("tokens_in_flight", "tokens_in_flight", "ISL in prefill, growing to ISL + OSL in decode", ""),
)

NAMESAKES = tuple(Namesake(ours, "AIPerf", name, how, differs) for ours, name, how, differs in _FACTS)
