"""`bench_serving` of SGLang 0.5.23."""

from __future__ import annotations

from loadstone.metrics._namesakes._form import Namesake

_CONNECT = "every request opens a connection, and making it is in the time; ours starts when it is there"
_TOKENS = (
    "without usage from the server, which it does not ask for, an answer has the length asked for: one that ended early"
    " is counted too long"
)
_WINDOW = "its duration holds the stop of the profiler and a look at /server_info"

_FACTS = (
    ("time_to_first_token", "ttft", "first event with text (chat: content or reasoning) - send", _CONNECT),
    (
        "inter_token_latency",
        "itl",
        "gaps between chunks, pooled; on its native API each divided by its new tokens and counted as often",
        "on the OpenAI API a gap is not divided by the tokens its chunk brought",
    ),
    ("time_per_output_token", "tpot", "(latency - ttft) / (output length - 1)", _TOKENS),
    (
        "request_latency",
        "e2e_latency",
        "end of the stream - send, the usage event and [DONE] included",
        f"ours ends with the last token; {_CONNECT}",
    ),
    ("request_throughput", "request_throughput", "completed / duration", _WINDOW),
    ("output_token_throughput", "output_throughput", "output lengths / duration", _TOKENS),
    ("input_token_throughput", "input_throughput", "prompt lengths / duration", _WINDOW),
    ("total_token_throughput", "total_throughput", "(prompt + output lengths) / duration", _TOKENS),
    (
        "concurrency",
        "concurrency",
        "sum of e2e latencies / duration (Little's law)",
        "a mean alone, of successes; ours is the level over time of whatever was in flight",
    ),
    ("goodput", "request_goodput", "requests that meet ttft, tpot and e2el limits / duration", _WINDOW),
    ("goodput_attainment", "slo_attainment", "good / all sent, failures are misses", "ours is in percent"),
    (
        "acceptance_length_pooled",
        "accept_length",
        "the server's own mean, from its server info",
        "it is of whatever the server did, not of this run; ours is from the answers",
    ),
    ("benchmark_duration", "duration", "first send until the end of the run", _WINDOW),
    ("request_count", "completed", "successes", ""),
)

NAMESAKES = tuple(
    Namesake(ours, "SGLang bench_serving", name, how, differs) for ours, name, how, differs in _FACTS
)
