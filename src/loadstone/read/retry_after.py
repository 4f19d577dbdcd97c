"""The wait that a response asks for in its header `Retry-After`: seconds, or a date (RFC 9110, 10.2.3).

A date counts from the response's own `Date`, so that no clock has to be trusted; without one it says nothing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime

_SECONDS = re.compile(r"[0-9]{1,9}(?:\.[0-9]{1,9})?")
_DATE_CHARS = 64


def seconds(headers: Mapping[str, str]) -> float | None:
    """The wait in seconds, 0 for a date that has passed; None when there is none, or none to be understood."""
    told = headers.get("retry-after", "").strip()
    if _SECONDS.fullmatch(told):
        return float(told)
    until, now = _date(told), _date(headers.get("date", ""))
    return None if until is None or now is None else max((until - now).total_seconds(), 0.0)


def _date(text: str) -> datetime | None:
    if not text or len(text) > _DATE_CHARS:
        return None
    from email.utils import (
        parsedate_to_datetime,
    )  # takes 10 ms to import, and hardly any response has a date to read

    try:
        date = parsedate_to_datetime(text)
    except (ValueError, TypeError, OverflowError, LookupError):
        return None
    return date if date.tzinfo is not None else None
