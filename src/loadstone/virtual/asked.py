"""The preflight: the same small requests as to a real server, in the same order, read by its routes and answered by its engines.

So the run finds them as it would find real ones: a router that has chosen, a cache that holds what a preflight brought. It is
over before the clock of the run begins, and has one of its own.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from loadstone import __version__, registry
from loadstone.config import EndpointConfig, hide, secrets
from loadstone.endpoints import Ask
from loadstone.errors import TargetError
from loadstone.folder import PreflightLog
from loadstone.plan.turn import Turn
from loadstone.preflight import Found
from loadstone.preflight.refusal import limited
from loadstone.sim.api.errors import ApiError
from loadstone.virtual.servers import Server


def ask(servers: Sequence[Server], endpoint: EndpointConfig, ask: Ask, turn: Turn, request_id: str) -> Found:
    """What every server says to a request like those of the run. Raises `TargetError` with its own words."""
    models = endpoint.models or (ask.model,)
    pairs = [(number, models[0]) for number in range(len(servers))] + [(0, name) for name in models[1:]]
    logs = []
    for asked, (number, model) in enumerate(pairs):
        small = limited(msgspec.structs.replace(ask, model=model), turn.max_tokens or 1)
        tokens, latency_ns = _answered(servers[number], endpoint, small, turn)
        logs.append(
            PreflightLog(
                request_id=f"{request_id}.{asked}" if asked else request_id,
                http_status=200,
                latency_ms=latency_ns / 1e6,
                content_tokens=turn.isl_tokens or 0,
                prompt_tokens=tokens,
                target=number,
                model=model,
            )
        )
    return Found(logs, [{"/version": {"version": __version__}} for _ in servers], ask)


def _answered(server: Server, endpoint: EndpointConfig, ask: Ask, turn: Turn) -> tuple[int, int]:
    """Tokens of the prompt, and how long the answer took in ns."""
    body = registry.load("endpoints", endpoint.type).body([turn], ask)
    try:
        asked, latency_ns = server.answer(msgspec.json.encode(body))
    except ApiError as error:
        where = server.url.rstrip(":")
        said = hide(error.message, secrets(endpoint)).rstrip(".")
        raise TargetError(
            f"{where}: the engine does not take the requests of this run (HTTP {int(error.status)}): {said}."
        ) from None
    return asked.prompt_tokens, latency_ns
