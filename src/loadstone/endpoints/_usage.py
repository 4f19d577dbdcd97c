"""Token counts under all the names that servers give them, brought to one.

One rule: what the server did not say is None, never 0; a number that cannot be a count (-1, 2**80) says nothing.
Where two names are there the first one listed wins.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import msgspec

from loadstone.endpoints import Usage


class _Details(msgspec.Struct, gc=False):
    """The details of a prompt or a completion."""

    cached_tokens: int | None = None
    reasoning_tokens: int | None = None


class RawUsage(msgspec.Struct, gc=False):
    """A usage object as it came; every field optional, unknown ones skipped."""

    prompt_tokens: int | None = None
    input_tokens: int | None = None
    prompt_token_count: int | None = msgspec.field(default=None, name="promptTokenCount")
    input_tokens_camel: int | None = msgspec.field(default=None, name="inputTokens")
    input_token_count: int | None = None
    completion_tokens: int | None = None
    output_tokens: int | None = None
    candidates_token_count: int | None = msgspec.field(default=None, name="candidatesTokenCount")
    output_tokens_camel: int | None = msgspec.field(default=None, name="outputTokens")
    generated_token_count: int | None = None
    prompt_tokens_details: _Details | None = None
    input_tokens_details: _Details | None = None
    completion_tokens_details: _Details | None = None
    output_tokens_details: _Details | None = None
    reasoning_tokens: int | None = None
    thoughts_token_count: int | None = msgspec.field(default=None, name="thoughtsTokenCount")
    cache_read_input_tokens: int | None = None
    prompt_cache_hit_tokens: int | None = None
    cached_content_token_count: int | None = msgspec.field(default=None, name="cachedContentTokenCount")
    cache_read_camel: int | None = msgspec.field(default=None, name="cacheReadInputTokens")
    cached_tokens: int | None = None


MOST_TOKENS = 2**31 - 1


def _first(*counts: int | None) -> int | None:
    return next((count for count in counts if count is not None and 0 <= count <= MOST_TOKENS), None)


def completion_tokens(raw: RawUsage) -> int | None:
    """Output tokens, reasoning included."""
    return _first(
        raw.completion_tokens,
        raw.output_tokens,
        raw.candidates_token_count,
        raw.output_tokens_camel,
        raw.generated_token_count,
    )


def normalised(raw: RawUsage | None) -> Usage | None:
    """The counts under our names; None when there was no usage or nothing known in it."""
    if raw is None:
        return None
    inputs = raw.prompt_tokens_details or raw.input_tokens_details or _Details()
    outputs = raw.completion_tokens_details or raw.output_tokens_details or _Details()
    usage = Usage(
        prompt_tokens=_first(
            raw.prompt_tokens,
            raw.input_tokens,
            raw.prompt_token_count,
            raw.input_tokens_camel,
            raw.input_token_count,
        ),
        completion_tokens=completion_tokens(raw),
        reasoning_tokens=_first(outputs.reasoning_tokens, raw.reasoning_tokens, raw.thoughts_token_count),
        cached_tokens=_first(
            inputs.cached_tokens,
            raw.cache_read_input_tokens,
            raw.prompt_cache_hit_tokens,
            raw.cached_content_token_count,
            raw.cache_read_camel,
            raw.cached_tokens,
        ),
    )
    return None if usage == Usage() else usage


def running(counts: Sequence[int | None]) -> list[int] | None:
    """Counts after each output event, or None unless every one is told and none falls or begins at 0."""
    told = [count for count in counts if count is not None]
    rises = all(earlier <= later for earlier, later in pairwise(told))
    return told if told and len(told) == len(counts) and rises and told[0] > 0 else None
