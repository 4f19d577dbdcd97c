"""The columns of `requests.parquet`, one row a request, in their order, with their meaning.

All `_ns` columns are CLOCK_MONOTONIC nanoseconds of the client's machine; null means that the moment
never came. The five instants are due, sent, first, last, done.
"""

from __future__ import annotations

import polars as pl

REQUESTS: dict[str, pl.DataType | type[pl.DataType]] = {
    "request": pl.Int64,  # row of the plan
    "request_id": pl.String,  # X-Request-ID as sent; null when it never was
    "phase": pl.String,  # name of its phase; run.json says which of them were measured
    "worker": pl.Int16,
    "conversation": pl.Int64,
    "turn": pl.Int32,
    "target": pl.Int16,  # which of endpoint.url it went to; null: never sent, and to go to any
    "model": pl.Int16,  # which of endpoint.model it asked
    "outcome": pl.String,  # one of read.outcome.OUTCOMES
    "fault": pl.String,  # one sentence; null when the outcome is a success; of one never sent the reason
    "http_status": pl.Int32,
    "finish_reason": pl.String,
    "retries": pl.Int16,  # transparent retries on a dead kept-alive connection
    "redirects": pl.Int16,  # 307 and 308 that were followed
    "retry_after_s": pl.Float64,  # what the server asked for with a status outside 2xx
    "streamed": pl.Boolean,  # the answer came as a stream of events; null without a readable answer
    "coalesced": pl.Boolean,  # a stream whose output, of several events, one read completed: no TTFT, no gaps
    "compressed": pl.String,  # content encoding of the body, which was not asked for; null: identity
    "unfinished_event": pl.Boolean,  # the last event was not ended by a blank line and counted all the same
    "choices": pl.Int16,  # answers in the response (n); null without any
    "due_ns": pl.Int64,
    "connect_ns": pl.Int64,  # connect began, for the first send; null on a kept-alive connection
    "tcp_ns": pl.Int64,  # TCP stood, through a proxy its tunnel too, and TLS began; null likewise
    "connected_ns": pl.Int64,  # TLS stood; without TLS the same moment as tcp_ns; null likewise
    "sent_ns": pl.Int64,  # just before the first byte goes to the kernel
    "written_ns": pl.Int64,  # the last byte of the request was given to the kernel; of a redirected one the first time
    "answered_ns": pl.Int64,  # arrival of the first bytes of the response, whatever they are
    "first_ns": pl.Int64,  # arrival of the first output token of any channel
    "first_answer_ns": pl.Int64,  # arrival of the first output token that is not reasoning
    "last_ns": pl.Int64,  # arrival of the last output token
    "done_ns": pl.Int64,  # arrival of the end of a whole response; of any other the moment when it was given up
    "first_read_ns": pl.Int64,  # when our process read the first token
    "kernel_stamps": pl.Boolean,  # arrival times are the kernel's; False: moments of reading
    "input_tokens": pl.Int64,  # the server's usage, else the length asked for
    "input_tokens_source": pl.String,  # "usage", "planned"
    "output_tokens": pl.Int64,  # all channels; null without an answer, or when nobody counted
    "output_tokens_source": pl.String,  # "usage", "tokenizer" (estimated)
    "planned_input_tokens": pl.Int64,
    "planned_output_tokens": pl.Int64,  # the max_tokens asked for
    "usage_prompt_tokens": pl.Int64,
    "usage_completion_tokens": pl.Int64,
    "usage_reasoning_tokens": pl.Int64,
    "usage_cached_tokens": pl.Int64,
    "usage_accepted_prediction_tokens": pl.Int32,  # of a predicted output that the client sent, those in the answer,
    "usage_rejected_prediction_tokens": pl.Int32,  # and those that are not
    "draft_steps": pl.Int32,  # speculative decoding: steps of the answer that checked a draft,
    "draft_tokens": pl.Int32,  # the tokens that were drafted for it,
    "draft_accepted_tokens": pl.Int32,  # and those of them that were accepted; null where the server does not tell
    "items": pl.Int32,  # images, embeddings or ranked passages in the answer; null from an endpoint of text
    "audio_s": pl.Float64,  # seconds of sound in the request that the server heard; null likewise
    "checked_output_tokens": pl.Int64,  # our tokenizer's count of the whole answer; null outside the sample
    "text_zlib_ratio": pl.Float64,  # bytes of the end of the text to its size as packed; null outside that sample
    "text_chars": pl.Int64,
    "reasoning_chars": pl.Int64,
    "request_bytes": pl.Int64,
    "response_bytes": pl.Int64,  # as received, HTTP head and framing included
    # One entry for every event that brought output tokens. Events that one read completed share its stamp:
    # only the last of them is dated exactly, the earlier ones arrived between the previous stamp and this one.
    "arrival_ns": pl.List(pl.Int64),
    "read_ns": pl.List(pl.Int64),
    "chunk_tokens": pl.List(pl.Int32),  # tokens of each such event by continuous usage; null when not told
    "chunk_choice": pl.List(
        pl.Int16
    ),  # which choice each such event belongs to; null when there is one choice only
}

LATER = frozenset(
    {
        "tcp_ns", "answered_ns", "usage_accepted_prediction_tokens", "usage_rejected_prediction_tokens",
        "draft_steps", "draft_tokens", "draft_accepted_tokens", "items", "audio_s",
        "text_zlib_ratio",
    }
)  # fmt: skip
"""Columns that the tables of older runs do not have: what they would hold is not known of those runs."""


def completed(table: pl.LazyFrame) -> pl.LazyFrame:
    """The same table with nulls for those of `LATER` that it does not have."""
    there = table.collect_schema().names()
    lacking = [name for name in REQUESTS if name in LATER and name not in there]
    return table.with_columns(pl.lit(None, REQUESTS[name]).alias(name) for name in lacking)
