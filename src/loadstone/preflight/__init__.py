"""The preflight: small requests before the run, so that what is wrong is said at once and in the server's words.

Every server is asked once for the first model, and the first server once for every other one: by the endpoint, the head
and the framing of the run itself, with another prompt, an id of its own and a limit of one token, or of a few where a
server wants more. On the way the servers' descriptions of themselves and the length of the chat template are learned.

All requests of a run are alike. So what one server does not take is left out for all of them, and those that had
answered before are asked again, without it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from loadstone.config import EndpointConfig, InputConfig, secrets
from loadstone.endpoints import Ask
from loadstone.folder import PreflightLog
from loadstone.load.reach import Reached, reach
from loadstone.plan import seeds
from loadstone.plan.turn import Turn
from loadstone.preflight.describe import described
from loadstone.preflight.models import first_model
from loadstone.preflight.trial import Trial, Tried, ask_of, path_of
from loadstone.tokens.prompts import Prompts
from loadstone.tokens.words import Words

__all__ = [
    "CONTENT_TOKENS",
    "Found",
    "Reached",
    "Server",
    "ask_of",
    "first_model",
    "path_of",
    "preflight",
    "reach",
    "small_turn",
]

CONTENT_TOKENS = 16


class Server(NamedTuple):
    """A server that can be reached, and the path of the requests to it."""

    reached: Reached
    path: str


class Found(NamedTuple):
    """What the preflight found."""

    logs: list[PreflightLog]
    """Of every server with the first model, then of the first server with every other one."""
    described: list[dict[str, Any]]
    """Headers and self-descriptions by which each server can be recognised."""
    ask: Ask
    """What to ask for in the run: as given, without the fields that a server does not take."""
    notices: tuple[str, ...] = ()
    """What a reader of the report has to know of it."""

    @property
    def log(self) -> PreflightLog:
        """Of the first server with the first model."""
        return self.logs[0]


def small_turn(config: InputConfig, words: Words, seed: int) -> Turn:
    """What a preflight asks: a prompt that the run does not have."""
    prompts = Prompts(words, seeds.derive(seed, "preflight"))
    return Turn(
        text=None if config.token_ids else prompts.text(0, CONTENT_TOKENS),
        token_ids=prompts.ids(0, CONTENT_TOKENS) if config.token_ids else None,
        max_tokens=1,
        isl_tokens=CONTENT_TOKENS,
    )


def preflight(
    servers: Sequence[Server],
    endpoint: EndpointConfig,
    ask: Ask,
    turn: Turn,
    request_id: str,
    *,
    strict: bool = False,
) -> Found:
    """Asks until every server has answered the request that the run will send.

    The first request has `request_id`, those after it a number behind it. Raises `TargetError` with the server's own
    words; with `strict` also when it refuses a field that could be left out.
    """
    models = endpoint.models or (ask.model,)
    pairs = [(number, models[0]) for number in range(len(servers))] + [(0, name) for name in models[1:]]
    tried: dict[tuple[int, str], Tried] = {}
    notices: list[str] = []
    asked = 0
    while (pair := _unasked(pairs, tried, ask)) is not None:
        server = servers[pair[0]]
        who = "The server" if len(servers) == 1 else f"The server {server.reached.target.url}"
        trial = Trial(server.reached, endpoint, server.path, turn, who, strict)
        asked += 1
        found = trial(_of(ask, pair[1]), f"{request_id}.{asked - 1}" if asked > 1 else request_id)
        tried[pair] = found
        ask = _of(found.ask, models[0])
        notices += found.notices
    return Found(
        [tried[pair].log(pair[0], pair[1]) for pair in pairs],
        [_described(server, endpoint, tried[number, models[0]]) for number, server in enumerate(servers)],
        ask,
        tuple(dict.fromkeys(notices)),
    )


def _unasked(
    pairs: Sequence[tuple[int, str]], tried: dict[tuple[int, str], Tried], ask: Ask
) -> tuple[int, str] | None:
    """The first server and model that have not been asked yet, or not for what is asked for by now."""
    return next((pair for pair in pairs if pair not in tried or tried[pair].ask != _of(ask, pair[1])), None)


def _of(ask: Ask, model: str) -> Ask:
    return msgspec.structs.replace(ask, model=model)


def _described(server: Server, endpoint: EndpointConfig, tried: Tried) -> dict[str, Any]:
    return described(server.reached, endpoint, tried.answer.headers, secrets(endpoint))
