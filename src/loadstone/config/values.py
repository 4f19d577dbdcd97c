"""What the texts after a flag mean. Pure; a `ValueError` says what the text must be.

One rule: a value is JSON where it is JSON, else text, so `128`, `true`, `null` and `{"a": 1}` keep their types.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

import msgspec

from loadstone.slo import SHORT_NAMES, split

DEEPEST = 64
"""Levels that a value may have: far more than any request needs, and all that reads or writes it can follow."""
_LONE = re.compile(r"[\ud800-\udfff]")


def json_or_text(text: str) -> Any:
    """The JSON value that `text` spells, else `text` itself."""
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        return text
    except RecursionError:
        raise ValueError(f"is nested deeper than {DEEPEST} levels.") from None


def fields(texts: Sequence[str]) -> dict[str, Any]:
    """Request fields: every text is `NAME:JSON`, or one JSON object. A later name replaces an earlier one."""
    found: dict[str, Any] = {}
    for text in texts:
        found.update(_object(text) if text.lstrip().startswith("{") else [_field(text)])
    return found


def _object(text: str) -> dict[str, Any]:
    value = json_or_text(text)
    if isinstance(value, dict):
        return value
    raise ValueError("looks like a JSON object but is not valid JSON; check quotes and commas.")


def _field(text: str) -> tuple[str, Any]:
    name, colon, value = text.partition(":")
    if colon and name.strip():
        return name.strip(), json_or_text(value.strip())
    raise ValueError("must be NAME:VALUE or a JSON object, such as min_tokens:128.")


def one_or_more(texts: Sequence[str]) -> Any:
    """The one text, or all of several."""
    return texts[0] if len(texts) == 1 else list(texts)


def numbers(texts: Sequence[str]) -> list[Any]:
    """Numbers separated by commas or spaces, such as `3,1`."""
    found = [json_or_text(word) for word in " ".join(texts).replace(",", " ").split()]
    if found and all(map(_is_number, found)):
        return found
    raise ValueError("must be numbers separated by commas, such as 3,1.")


def points(texts: Sequence[str]) -> list[Any]:
    """Points of a curve, `X:Y` separated by commas, or JSON: `0:1,60:20` or `[[0, 1], [60, 20]]`."""
    text = " ".join(texts)
    if text.lstrip().startswith("["):
        value = json_or_text(text)
        if isinstance(value, list) and value:
            return value
        raise ValueError("looks like a JSON array but is empty or not valid JSON; check brackets and commas.")
    pairs = [word.partition(":") for word in text.replace(",", " ").split()]
    found = [[json_or_text(x), json_or_text(y)] for x, _, y in pairs]
    if found and all(_is_number(number) for point in found for number in point):
        return found
    raise ValueError(
        "must be SECONDS:RATE separated by commas, such as 0:1,60:20, or JSON: [[0, 1], [60, 20]]."
    )


def tables(texts: Sequence[str]) -> list[Any]:
    """A JSON list of tables."""
    value = json_or_text(" ".join(texts))
    if isinstance(value, list):
        return value
    raise ValueError('must be a list of tables, such as [{"name": "steady"}].')


_NO_LIMIT = 'must be "METRIC:NUMBER ...", such as "time_to_first_token:200".'
_OF_SLO = f"{_NO_LIMIT} METRIC<LIMIT is for --slo, where without a statistic it means the same."


def limits(texts: Sequence[str]) -> dict[str, Any]:
    """Limits by metric, `METRIC:VALUE` separated by spaces, such as `time_to_first_token:200`."""
    found: dict[str, Any] = {}
    for word in " ".join(texts).split():
        name, _, text = word.partition(":")
        value = json_or_text(text)
        if not name or not _is_number(value):
            raise ValueError(_OF_SLO if "<" in word else _NO_LIMIT)
        found[SHORT_NAMES.get(name.lower(), name)] = value
    if not found:
        raise ValueError(_NO_LIMIT)
    return found


def objectives(texts: Sequence[str]) -> list[str]:
    """Objectives separated by commas: `ttft.p99<500ms,error_rate<0.1%`; what each one means is for `slo` to say."""
    if found := split(texts):
        return found
    raise ValueError('must be "METRIC.STATISTIC<LIMIT,...", such as "time_to_first_token.p99<500ms".')


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def is_json(value: Any, levels: int = DEEPEST) -> bool:
    """Whether JSON can carry `value` as it is: no dates (YAML and TOML know them), no infinity, no half of a
    character, and no deeper than `levels`.
    """
    if isinstance(value, dict | list) and not levels:
        return False
    if isinstance(value, dict):
        return all(
            isinstance(name, str) and is_json(name) and is_json(item, levels - 1)
            for name, item in value.items()
        )
    if isinstance(value, list):
        return all(is_json(item, levels - 1) for item in value)
    if isinstance(value, str):
        return not _LONE.search(value)
    return value is None or isinstance(value, int) or (isinstance(value, float) and math.isfinite(value))
