"""How a server describes itself: version and flags, where it tells them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from loadstone.config import EndpointConfig, hide_all
from loadstone.errors import TargetError
from loadstone.load.reach import Reached
from loadstone.preflight import question
from loadstone.read.answer import Answer
from loadstone.terminal import printable

ASIDE_TIMEOUT_S = 2.0
"""For questions a server need not know the answer to."""
MOST_BYTES = 65536
_PATHS = ("/version", "/get_server_info")


def described(
    reached: Reached, endpoint: EndpointConfig, headers: Mapping[str, str], hidden: list[str]
) -> dict[str, Any]:
    """What the server's `headers` and its own pages tell of it, without anything `hidden`."""
    names = {name: printable(headers[name]) for name in ("server", "x-powered-by") if name in headers}
    try:
        known: dict[str, Any] = hide_all({**names, **_pages(reached, endpoint)}, hidden)
    except RecursionError:  # it nests without end; a server need not be described
        known = names
    return known


def _pages(reached: Reached, endpoint: EndpointConfig) -> dict[str, Any]:
    found = {}
    for path in _PATHS:
        answer = _aside(reached, endpoint, path)
        if answer is None or len(answer.body) > MOST_BYTES:
            continue
        try:
            found[path] = msgspec.json.decode(answer.body)
        except (msgspec.DecodeError, RecursionError):
            continue
    return found


def _aside(reached: Reached, endpoint: EndpointConfig, path: str) -> Answer | None:
    """A GET whose answer may be missing; None unless it is a success."""
    data = question.asked(reached, endpoint, reached.target.path(path), "preflight")
    try:
        exchanged = question.exchange(reached, endpoint, data, ASIDE_TIMEOUT_S)
    except TargetError:
        return None
    answer = question.document(exchanged, endpoint)
    return answer if question.is_success(answer) else None
