"""The unit of work: a turn is one request's content, a conversation is a list of turns.

Pure data. Knows neither how a server wants it spelled (that is an endpoint) nor when it is sent
(that is the schedule).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec


class Turn(msgspec.Struct, frozen=True, kw_only=True):
    """The content of one request.

    Exactly one of `text`, `token_ids` and `raw` is set. `isl_tokens` is the length of the content
    in tokens of the client's tokenizer (None: not known), `max_tokens` the output length to ask
    for (None: the server's own limit). `at_ns` is when it was sent where it was recorded, from whatever origin
    (None: nobody says); `think_ns` how long after the answer before it follows.
    """

    text: str | None = None
    token_ids: tuple[int, ...] | None = None
    raw: Mapping[str, Any] | None = None
    max_tokens: int | None = None
    isl_tokens: int | None = None
    at_ns: int | None = None
    think_ns: int = 0


class Conversation(msgspec.Struct, frozen=True, kw_only=True):
    """Turns that are sent one after the other, in their order."""

    id: int
    turns: Sequence[Turn]
