"""What the preflight would find, asked of the server's own routes: whether it takes the run's requests, and how it counts.

Nothing is generated, so that the engines are as they were: a prompt of the preflight is in no cache.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from loadstone import __version__, registry
from loadstone.config import EndpointConfig
from loadstone.endpoints import Ask
from loadstone.errors import TargetError
from loadstone.folder import PreflightLog
from loadstone.plan.turn import Turn
from loadstone.preflight import Found
from loadstone.sim.api.errors import ApiError
from loadstone.virtual.servers import Server


def ask(servers: Sequence[Server], endpoint: EndpointConfig, ask: Ask, turn: Turn, request_id: str) -> Found:
    """What every server says to a request like those of the run. Raises `TargetError` with its own words.

    No time passes, so the latencies are 0.
    """
    models = endpoint.models or (ask.model,)
    pairs = [(number, models[0]) for number in range(len(servers))] + [(0, name) for name in models[1:]]
    logs = []
    for asked, (number, model) in enumerate(pairs):
        tokens = _prompt_tokens(servers[number], endpoint, msgspec.structs.replace(ask, model=model), turn)
        logs.append(
            PreflightLog(
                request_id=f"{request_id}.{asked}" if asked else request_id,
                http_status=200,
                latency_ms=0.0,
                content_tokens=turn.isl_tokens or 0,
                prompt_tokens=tokens,
                target=number,
                model=model,
            )
        )
    return Found(logs, [{"/version": {"version": __version__}} for _ in servers], ask)


def _prompt_tokens(server: Server, endpoint: EndpointConfig, ask: Ask, turn: Turn) -> int:
    body = registry.load("endpoints", endpoint.type).body([turn], ask)
    try:
        return server.asked(msgspec.json.encode(body)).prompt_tokens
    except ApiError as error:
        raise TargetError(
            f"{server.url}: the engine does not take the requests of this run (HTTP {int(error.status)}): {error.message}."
        ) from None
