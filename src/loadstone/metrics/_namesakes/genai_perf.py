"""GenAI-Perf, as it stands in the repository of Triton's perf_analyzer; AIPerf has taken its place."""

from __future__ import annotations

from loadstone.metrics._namesakes._form import Namesake

_CONTENT = "text in `content` alone counts: reasoning and tool calls are no output there"
_WINDOW = "its duration ends with the last response that had content"
_TOKENS = "its own tokenizer's count of the text, never the server's"

_FACTS = (
    ("time_to_first_token", "time_to_first_token", "first response with content - request", _CONTENT),
    (
        "inter_token_latency",
        "inter_token_latency",
        "(request_latency - TTFT) / (output tokens - 1), one value a request",
        "a mean of means that no single gap shows in; ours pools gaps. Its number is our time_per_output_token",
    ),
    (
        "time_per_output_token",
        "inter_token_latency",
        "(request_latency - TTFT) / (output tokens - 1)",
        _TOKENS,
    ),
    ("request_latency", "request_latency", "last response with content - request", _CONTENT),
    (
        "e2e_output_token_throughput",
        "output_token_throughput_per_request",
        "output tokens / request_latency",
        _TOKENS,
    ),
    ("output_sequence_length", "output_sequence_length", "tokens of the answer's text", _TOKENS),
    (
        "input_sequence_length",
        "input_sequence_length",
        "tokens of the first message's text",
        "later messages and the chat template are not in it",
    ),
    ("output_token_throughput", "output_token_throughput", "sum of output tokens / duration", _WINDOW),
    (
        "request_throughput",
        "request_throughput",
        "all requests / duration",
        "requests that brought no output count as well; ours counts successes",
    ),
    ("goodput", "request_goodput", "requests that meet all objectives / duration", _WINDOW),
)

NAMESAKES = tuple(Namesake(ours, "GenAI-Perf", name, how, differs) for ours, name, how, differs in _FACTS)
