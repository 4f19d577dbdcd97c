"""Token counts under all the names that servers give them, brought to one.

One rule: what the server did not say is None, never 0; what cannot be a count (-1, 2**80, "many") says nothing, and
never harms the rest. Where two names are there the first one listed wins.
"""

from __future__ import annotations

from collections.abc import Reversible, Sequence
from itertools import pairwise
from typing import Any

from loadstone.endpoints import Usage

_NOTHING = Usage()
MOST_TOKENS = 2**31 - 1
_MOST_DIGITS = 10

_PROMPT = {
    "prompt_tokens": (),
    "input_tokens": ("cache_read_input_tokens", "cache_creation_input_tokens"),
    "promptTokenCount": (),
    "inputTokens": ("cacheReadInputTokens", "cacheWriteInputTokens"),
    "input_token_count": (),
}
"""The names of the prompt's length, and what is not counted in it but belongs to it: Anthropic and Bedrock count
what they read from the cache, and wrote to it, apart."""
_COMPLETION = {
    "completion_tokens": (),
    "output_tokens": (),
    "candidatesTokenCount": ("thoughtsTokenCount",),
    "outputTokens": (),
    "generated_token_count": (),
}
"""Likewise for the output: Gemini counts its reasoning apart."""
_REASONING = ("reasoning_tokens", "thoughtsTokenCount")
_CACHED = (
    "cache_read_input_tokens",
    "prompt_cache_hit_tokens",
    "cachedContentTokenCount",
    "cacheReadInputTokens",
    "cached_tokens",
)
_NOT_CACHED = "prompt_cache_miss_tokens"
_INPUT_DETAILS = ("prompt_tokens_details", "input_tokens_details")
_OUTPUT_DETAILS = ("completion_tokens_details", "output_tokens_details")


def count(value: Any) -> int | None:
    """`value` as a number of tokens: an integer, however it is spelled. None when it cannot be one."""
    whole = type(value) is int
    if isinstance(value, float):
        whole = value.is_integer()
    elif isinstance(value, str):
        whole = len(value) <= _MOST_DIGITS and value.isascii() and value.isdecimal()
    number = int(value) if whole else -1
    return number if 0 <= number <= MOST_TOKENS else None


def _first(raw: dict[str, Any], names: Sequence[str]) -> int | None:
    for name in names:
        value = raw.get(name)
        if value is not None and (found := count(value)) is not None:
            return found
    return None


def _detail(raw: dict[str, Any], places: Sequence[str], name: str) -> int | None:
    for place in places:
        details = raw.get(place)
        if isinstance(details, dict) and (found := count(details.get(name))) is not None:
            return found
    return None


def completion_tokens(raw: Any) -> int | None:
    """Output tokens, reasoning included."""
    return _whole(raw, _COMPLETION) if isinstance(raw, dict) else None


def _whole(raw: dict[str, Any], names: dict[str, tuple[str, ...]]) -> int | None:
    """The first count that is there, with what is counted apart from it."""
    for name, apart in names.items():
        value = raw.get(name)
        if value is not None and (found := count(value)) is not None:
            return found if not apart else count(found + sum(count(raw.get(other)) or 0 for other in apart))
    return None


def _prompt(raw: dict[str, Any]) -> int | None:
    if (whole := _whole(raw, _PROMPT)) is not None:
        return whole
    hit, miss = _first(raw, _CACHED), count(raw.get(_NOT_CACHED))
    return None if hit is None or miss is None else count(hit + miss)


def _cached(raw: dict[str, Any], prompt_tokens: int | None) -> int | None:
    told = _detail(raw, _INPUT_DETAILS, "cached_tokens")
    if told is None:
        told = _first(raw, _CACHED)
    if told is None and prompt_tokens is not None and _NOT_CACHED in raw:
        miss = count(raw[_NOT_CACHED])
        told = None if miss is None else count(prompt_tokens - miss)
    return told


def normalised(raw: Any) -> Usage | None:
    """The counts under our names; None when there was no usage or nothing known in it."""
    if not isinstance(raw, dict):
        return None
    prompt_tokens = _prompt(raw)
    reasoning_tokens = _detail(raw, _OUTPUT_DETAILS, "reasoning_tokens")
    usage = Usage(
        prompt_tokens=prompt_tokens,
        accepted_prediction_tokens=_detail(raw, _OUTPUT_DETAILS, "accepted_prediction_tokens"),
        rejected_prediction_tokens=_detail(raw, _OUTPUT_DETAILS, "rejected_prediction_tokens"),
        completion_tokens=completion_tokens(raw),
        reasoning_tokens=_first(raw, _REASONING) if reasoning_tokens is None else reasoning_tokens,
        cached_tokens=_cached(raw, prompt_tokens),
    )
    return None if usage == _NOTHING else usage


def last(told: Reversible[Any]) -> Usage | None:
    """The last usage that says anything."""
    return next(filter(None, map(normalised, reversed(told))), None)


def running(counts: Sequence[int | None]) -> list[int] | None:
    """Counts after each output event, or None unless every one is told and none falls or begins at 0."""
    told = [count for count in counts if count is not None]
    rises = all(earlier <= later for earlier, later in pairwise(told))
    return told if told and len(told) == len(counts) and rises and told[0] > 0 else None


def running_of_choices(
    counts: Sequence[int | None], numbers: Sequence[int], total: int | None
) -> list[int] | None:
    """The same for several choices, `numbers[i]` being the one that `counts[i]` came with.

    Servers count each choice by itself, or all together; `total`, their last word, tells which.
    """
    if total is None:
        return None
    by_choice: dict[int, list[int | None]] = {}
    for number, told in zip(numbers, counts, strict=True):
        by_choice.setdefault(number, []).append(told)
    if all(map(running, by_choice.values())) and sum(own[-1] or 0 for own in by_choice.values()) == total:
        return _sums(counts, numbers)
    together = running(counts)
    return together if together is not None and together[-1] == total else None


def _sums(counts: Sequence[int | None], numbers: Sequence[int]) -> list[int]:
    """What all choices had together each time."""
    latest: dict[int, int] = {}
    sums, together = [], 0
    for number, told in zip(numbers, counts, strict=True):
        together += (told or 0) - latest.get(number, 0)
        latest[number] = told or 0
        sums.append(together)
    return sums
