"""Fields that a server refuses, and how a run does without them. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from loadstone.endpoints import Ask
from loadstone.read.answer import Answer

OPTIONAL = {
    "continuous_usage_stats": "so there are no running token counts",
    "stream_options": "so streams bring no usage unless the server sends it unasked",
    "ignore_eos": "so answers may end before the length asked for",
    "min_tokens": "so answers may end before the length asked for",
    "max_completion_tokens": "and max_tokens is sent instead",
}
"""Fields that a run can do without, and what comes of it."""
_INNER = {"continuous_usage_stats": "stream_options"}
"""Fields within another one, which is named with them."""
_LIMITS = ("max_tokens", "max_completion_tokens", "min_tokens", "max_new_tokens")
"""Fields that would ask for more than one token if the user's extra inputs set them."""
_OF_LENGTH = re.compile(r"(?<!\w)max_(completion_|new_|output_)?tokens(?!\w)")
"""How a refusal names the limit, whether it means the field or that one token is too few."""
_INVALID = (400, 422)


def limited(ask: Ask, tokens: int) -> Ask:
    """What to ask for, whatever limits the user's extra inputs set."""
    extra = {
        name: tokens if name in _LIMITS and value is not None else value for name, value in ask.extra.items()
    }
    return msgspec.structs.replace(ask, extra=extra)


def names_the_limit(answer: Answer) -> bool:
    """Whether the refusal speaks of the limit of tokens."""
    return answer.status in _INVALID and bool(_OF_LENGTH.search(answer.excerpt))


def refused_field(answer: Answer, body: Mapping[str, Any], ask: Ask) -> str | None:
    """The optional field of `body` that the server's refusal names first, rather than the field around it; None when
    it names none.
    """
    if answer.status not in _INVALID:
        return None
    places = {}
    for field in OPTIONAL:
        found = re.search(rf"(?<!\w){field}(?!\w)", answer.excerpt)
        if found and _can_go(field, body, ask):
            places[field] = found.start()
    for inner in _INNER.keys() & places.keys():
        places.pop(_INNER[inner], None)
    return min(places, key=places.__getitem__) if places else None


def _can_go(field: str, body: Mapping[str, Any], ask: Ask) -> bool:
    """Whether it was sent, and `without_field` knows the way to send it no more."""
    if field == "continuous_usage_stats":
        return ask.usage_per_chunk and "stream_options" in body and "stream_options" not in ask.extra
    return field in body and (field != "max_completion_tokens" or field not in ask.extra)


def without_field(ask: Ask, field: str) -> Ask:
    """What to ask for so that `field` is not sent."""
    match field:
        case "max_completion_tokens":
            return msgspec.structs.replace(ask, legacy_max_tokens=True)
        case "continuous_usage_stats":
            return msgspec.structs.replace(ask, usage_per_chunk=False)
        case _:
            return msgspec.structs.replace(ask, extra={**ask.extra, field: None})
