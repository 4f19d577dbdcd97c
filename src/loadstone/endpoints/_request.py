"""The fields that chat and completions requests have in common."""

from __future__ import annotations

from typing import Any

from loadstone.endpoints import Ask


def completed(body: dict[str, Any], ask: Ask, limit_field: str, max_tokens: int | None) -> dict[str, Any]:
    """`body` with the output limit, streaming and the extra inputs, which win over everything.

    A stream is always asked for its usage: without it output tokens could only be estimated.
    """
    if max_tokens is not None:
        body[limit_field] = max_tokens
    body["stream"] = ask.streaming
    if ask.streaming:
        body["stream_options"] = {"include_usage": True}
        if ask.usage_per_chunk:
            body["stream_options"]["continuous_usage_stats"] = True
    body.update(ask.extra)
    return {name: value for name, value in body.items() if value is not None}
