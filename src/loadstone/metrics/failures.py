"""Failures: what did not succeed through the server, and how long its prompts were.

A failure is what error_rate counts as one. Which outcomes there were is in `outcomes` of the report.
"""

from __future__ import annotations

import re

import numpy as np
import polars as pl

from loadstone.metrics import Each, Result, Tables, metric

ORDER = 55

TOO_LONG = re.compile(
    r"context[ _-]?(?:length|size|window)|(?:prompt|input) is too long|exceeds the maximum allowed length"
    r"|max_(?:model_len|seq_len|input_len)|max_new_tokens` must be",
    re.IGNORECASE,
)
"""Words with which servers refuse a prompt that does not fit: vLLM, SGLang and OpenAI (`maximum context length`,
`context_length_exceeded`), llama.cpp (`available context size`, `exceed_context_size_error`), TGI, TensorRT-LLM."""


@metric("error_request_count", unit="requests", better="lower", needs=("attempt",))
def error_request_count(tables: Tables) -> Result:
    """Requests that the server failed: error_rate is this / (this + request_count)."""
    return float(tables.failed.sum())


@metric("context_overflow_count", unit="requests", better="lower", needs=("attempt",))
def context_overflow_count(tables: Tables) -> Result:
    """Failed requests whose error says that the prompt, or the prompt and its answer, does not fit the model's context.

    Known by the words of the error, which differ from server to server: vLLM, SGLang, llama.cpp, TGI, TensorRT-LLM and
    OpenAI's are known; in another server's words it is not counted.
    """
    if not tables.failed.any():
        return 0.0
    count = 0
    for position, frame in tables.parts("fault"):
        faults = frame["fault"].filter(pl.Series(tables.failed[position : position + len(frame)]))
        count += sum(TOO_LONG.search(fault or "") is not None for fault in faults)
    return float(count)


@metric("failed_input_sequence_length", unit="tokens", better="neither", needs=("failure",))
def failed_input_sequence_length(tables: Tables) -> Each:
    """Tokens of the prompt of one failed request: as planned, since who fails seldom tells usage.

    Beside input_sequence_length it shows whether long prompts fail; mean x count is their sum. The tokens that came for them are
    failed_output_tokens. AIPerf's error_isl.
    """
    lengths = np.where(tables.failed, tables.number("input_tokens"), np.nan)
    return Each(lengths, "the length of no failed prompt is known.", failed_too=True)
