"""inference-perf (git 7de5ef2), genai-bench 0.0.5, EvalScope 1.14.1, and llmperf (git f1d6bed, no longer maintained)."""

from __future__ import annotations

from loadstone.metrics._namesakes._form import Namesake

_PERF, _BENCH, _SCOPE, _LLMPERF = "inference-perf", "genai-bench", "EvalScope", "llmperf"

NAMESAKES = (
    Namesake(
        "time_to_first_token",
        _PERF,
        "time_to_first_token",
        "first `delta.content` - start",
        "reasoning is not waited for; an answer of one token has none",
    ),
    Namesake(
        "inter_token_latency",
        _PERF,
        "inter_token_latency",
        "gaps between tokens, pooled, every chunk tokenized again",
        "a chunk of k tokens is one gap and k - 1 gaps of 0; ours are k gaps of its k-th part",
    ),
    Namesake("time_per_output_token", _PERF, "time_per_output_token", "(last - first) / (n - 1)", ""),
    Namesake(
        "normalized_latency",
        _PERF,
        "normalized_time_per_output_token ntpot",
        "request latency / n",
        "it ends when the server closes the body; a success without tokens is a 0 in the mean",
    ),
    Namesake(
        "request_latency",
        _PERF,
        "request_latency",
        "end of the body - start",
        "ours ends with the last token",
    ),
    Namesake(
        "time_to_first_token",
        _BENCH,
        "ttft",
        "first content or reasoning - start",
        "a new connection each time",
    ),
    Namesake(
        "time_per_output_token",
        _BENCH,
        "tpot",
        "(end - ttft) / (n - 1)",
        "the end is that of the finish and usage chunks; dropped where the output took less than 1 ms",
    ),
    Namesake(
        "output_token_throughput_per_user",
        _BENCH,
        "output_inference_speed",
        "1 / tpot, one value a request",
        "",
    ),
    Namesake("prefill_throughput_per_user", _BENCH, "input_throughput", "prompt tokens / ttft", ""),
    Namesake(
        "request_latency",
        _BENCH,
        "e2e_latency",
        "end of the finish and usage chunks - start",
        "ours ends with the last token",
    ),
    Namesake(
        "time_to_first_token",
        _SCOPE,
        "ttft",
        "first output, tool calls included - start",
        "a success without text adds a 0 to the mean",
    ),
    Namesake(
        "time_per_output_token",
        _SCOPE,
        "tpot",
        "(end - ttft) / (n - 1)",
        "the end is that of the last JSON chunk, usage included",
    ),
    Namesake(
        "inter_token_latency",
        _SCOPE,
        "itl",
        "gaps between chunks",
        "not divided by the tokens a chunk brought",
    ),
    Namesake(
        "time_to_first_token",
        _LLMPERF,
        "ttft_s",
        "first content - start",
        "the chunk of the role counts as a token",
    ),
    Namesake(
        "inter_token_latency",
        _LLMPERF,
        "inter_token_latency_s",
        "(TTFT + all gaps) / chunks, one value a request",
        "the wait for the first token is in it, and chunks are taken for tokens: it is nearer to our normalized_latency",
    ),
    Namesake(
        "request_latency",
        _LLMPERF,
        "end_to_end_latency_s",
        "end of the body - start",
        "ours ends with the last token",
    ),
    Namesake(
        "e2e_output_token_throughput",
        _LLMPERF,
        "request_output_throughput_token_per_s",
        "output tokens / latency, by one tokenizer for all servers",
        "",
    ),
)
