"""AIPerf 0.13.0: what the server tells in usage, the phases on the wire, other modalities, energy."""

from __future__ import annotations

from loadstone.metrics._namesakes._form import Namesake

_PHASES = (
    "its sending starts before there is a connection, so waiting for one, DNS and connecting are in it and in the total"
    " once more; ours add up"
)
_BODY = "ours takes the first byte of the answer, its head included"
_TEMPLATE = "the chat template is in the server's count and not in its own, and there is no sign; ours leaves the template out"

_FACTS: tuple[tuple[str, str, str, str], ...] = (
    ("usage_prompt_tokens", "usage_prompt_tokens", "the server's usage", ""),
    ("usage_completion_tokens", "usage_completion_tokens", "the server's usage", ""),
    ("usage_total_tokens", "usage_total_tokens", "the usage's own total", "ours is the sum of the two"),
    ("usage_prompt_cache_read_tokens", "usage_prompt_cache_read_tokens", "the server's usage", ""),
    (
        "usage_prompt_cache_read_share",
        "overall_usage_prompt_cache_read_pct",
        "100 sum(read) / sum(prompt)",
        "prompts of which no cache was told are in the sum below",
    ),
    ("usage_accepted_prediction_tokens", "usage_accepted_prediction_tokens", "the server's usage", ""),
    ("usage_rejected_prediction_tokens", "usage_rejected_prediction_tokens", "the server's usage", ""),
    ("reasoning_share", "thinking_efficiency", "reasoning / output tokens, 0 to 1", "ours is in percent"),
    (
        "usage_completion_tokens_diff_pct",
        "usage_completion_tokens_diff_pct",
        "100 |server - client| / client",
        "it has no sign",
    ),
    ("input_length_mismatch", "usage_prompt_tokens_diff_pct", "100 |server - client| / client", _TEMPLATE),
    (
        "usage_discrepancy_count",
        "usage_discrepancy_count",
        "requests with one of these above 10 %",
        _TEMPLATE,
    ),
    ("acceptance_length", "acceptance_length", "1 + accepted / steps, from vLLM's facts of each request", ""),
    ("draft_acceptance_rate", "draft_acceptance_rate", "accepted / drafted", ""),
    ("items_throughput", "image_throughput", "images / time", ""),
    ("latency_per_item", "image_latency", "latency / images", ""),
    ("rtfx", "rtfx", "seconds of sound / latency", ""),
    (
        "http_req_connection_reused",
        "http_req_connection_reused",
        "0 or 1 of each request",
        "ours is the share",
    ),
    (
        "http_req_blocked",
        "http_req_blocked",
        "waiting for a connection of the pool",
        "the wait for a slot is in ours and not in its",
    ),
    ("http_req_dns_lookup", "http_req_dns_lookup", "looking the name up", ""),
    (
        "http_req_connecting",
        "http_req_connecting",
        "TCP and TLS together",
        "ours is TCP; TLS stands apart, and a kept-alive connection has none, where it counts 0",
    ),
    (
        "http_req_sending",
        "http_req_sending",
        "aiohttp's start of the request until its body is sent",
        _PHASES,
    ),
    ("http_req_waiting", "http_req_waiting", "body sent until the first byte of the answer's body", _BODY),
    ("http_req_receiving", "http_req_receiving", "first byte to the last of the answer's body", _BODY),
    ("http_req_duration", "http_req_duration", "sending + waiting + receiving", _PHASES),
    ("http_req_total", "http_req_total", "all of them added up", _PHASES),
    (
        "total_energy",
        "total_gpu_energy",
        "growth of the devices' counters, or power x time",
        "in the vendor's names",
    ),
    ("average_power", "average_gpu_power", "energy / time", ""),
    ("energy_per_output_token", "energy_per_output_token", "energy / output tokens, in mJ", "ours is in J"),
    ("output_tokens_per_joule", "output_tokens_per_joule", "output tokens / energy", ""),
)

NAMESAKES = tuple(Namesake(ours, "AIPerf", name, how, differs) for ours, name, how, differs in _FACTS)
