"""The preflight: one small request before the run, so that what is wrong is said at once and in the server's words.

It uses the endpoint, the head and the framing of the run itself, with another prompt, an id of its own and a
limit of one token. On the way the model's name (when none was given), the server's description of
itself and the length of its chat template are learned. Makes one attempt; never retries.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import msgspec

from loadstone import registry
from loadstone.config import EndpointConfig, secrets
from loadstone.endpoints import Ask
from loadstone.errors import TargetError
from loadstone.folder import PreflightLog
from loadstone.load import once, sockets
from loadstone.load.once import Exchange
from loadstone.plan.turn import Turn
from loadstone.read.answer import Answer, read_answer
from loadstone.read.faults import without
from loadstone.terminal import printable
from loadstone.wire import request
from loadstone.wire.url import Target

CONTENT_TOKENS = 16
ASIDE_TIMEOUT_S = 2.0
"""For questions a server need not know the answer to."""
_DESCRIPTIONS = ("/version", "/get_server_info")
_LIMITS = ("max_tokens", "max_completion_tokens", "min_tokens", "max_new_tokens")
"""Fields that would ask for more than one token if the user's extra inputs set them."""


class Reached(NamedTuple):
    """A server that can be reached, and where."""

    target: Target
    family: int
    address: tuple[Any, ...]


class Preflight(NamedTuple):
    """What the preflight found."""

    log: PreflightLog
    server: dict[str, Any]
    """Headers and self-descriptions by which the server can be recognised."""


def reach(target: Target, endpoint: EndpointConfig) -> Reached:
    """The first address of `target` that accepts a connection (and a TLS handshake). Raises `TargetError`."""
    try:
        addresses = sockets.resolve(target.host, target.port)
        sock, (family, address) = once.connect(
            target, addresses, endpoint.connect_timeout_s, not endpoint.insecure
        )
    except ssl.SSLCertVerificationError as error:
        raise TargetError(
            f"{target.url}: TLS: {error.verify_message}. Give it a trusted certificate, or use --insecure."
        ) from None
    except ssl.SSLError as error:
        raise TargetError(
            f"{target.url}: TLS failed: {error.reason or error}. Is it an https port?"
        ) from None
    except OSError as error:
        raise TargetError(
            f"cannot connect to {target.url}: {error.strerror or error}. Is the server running there?"
        ) from None
    sock.close()
    return Reached(target, family, address)


def first_model(reached: Reached, endpoint: EndpointConfig) -> str:
    """The first model that the server lists. Raises `TargetError`."""
    answer = _aside(reached, endpoint, "/v1/models")
    try:
        name = msgspec.json.decode(answer.body)["data"][0]["id"] if answer else None
    except (msgspec.DecodeError, LookupError, TypeError):
        name = None
    if not isinstance(name, str):
        raise TargetError(
            f"{reached.target.url} does not list its models at /v1/models. Name the model with --model."
        )
    return name


def preflight(
    reached: Reached, endpoint: EndpointConfig, ask: Ask, path: str, turn: Turn, request_id: str
) -> Preflight:
    """Sends the one request and reads its answer. Raises `TargetError` with the server's own words."""
    module = registry.load("endpoints", endpoint.type)
    body = msgspec.json.encode(module.body([turn], _of_one_token(ask)))
    head = request.head(
        reached.target, path, streaming=ask.streaming, api_key=endpoint.api_key, headers=endpoint.headers
    )
    ended = module.ended if ask.streaming else None
    timeout_s = min(endpoint.timeout_s, endpoint.first_token_timeout_s)
    exchanged = _exchange(reached, endpoint, head + request.tail(request_id, body), timeout_s, ended)
    answer = read_answer(exchanged.raw, module, streaming=ask.streaming, complete=exchanged.complete)
    if answer.fault is not None:
        raise TargetError(_refusal(reached.target, path, ask.model, answer))
    usage = answer.reply.usage if answer.reply else None
    log = PreflightLog(
        request_id=request_id,
        http_status=answer.status,
        latency_ms=exchanged.latency_ns / 1e6,
        content_tokens=turn.isl_tokens or 0,
        prompt_tokens=usage.prompt_tokens if usage else None,
    )
    return Preflight(log, {**_description(answer.headers), **_descriptions(reached, endpoint)})


def _of_one_token(ask: Ask) -> Ask:
    extra = {name: 1 if name in _LIMITS else value for name, value in ask.extra.items()}
    return msgspec.structs.replace(ask, extra=extra)


def _refusal(target: Target, path: str, model: str, answer: Answer) -> str:
    where = f"{target.url}: the preflight request to {path} for model {printable(model)!r} failed"
    advice = {
        401: "Give a valid key with --api-key.",
        403: "Give a valid key with --api-key.",
        404: "Check --url, --endpoint-type and --model.",
        405: "Check --url and --endpoint-type.",
    }.get(answer.status, "")
    return f"{where}: {printable(answer.fault or '')} {advice}".rstrip()


def _exchange(
    reached: Reached,
    endpoint: EndpointConfig,
    data: bytes,
    timeout_s: float,
    ended: Callable[[bytes], bool] | None = None,
) -> Exchange:
    target = reached.target
    try:
        sock, _ = once.connect(
            target, [(reached.family, reached.address)], endpoint.connect_timeout_s, not endpoint.insecure
        )
        with sock:
            exchanged = once.exchange(sock, data, timeout_s, ended)
    except OSError as error:
        raise TargetError(f"{target.url}: {error.strerror or error}.") from None
    if not exchanged.raw:
        raise TargetError(f"{target.url} closed the connection without an answer.")
    return exchanged._replace(raw=without([exchanged.raw], secrets(endpoint))[0])


def _aside(reached: Reached, endpoint: EndpointConfig, path: str) -> Answer | None:
    """A GET whose answer may be missing; None unless it is a success."""
    head = request.head(
        reached.target,
        reached.target.path(path),
        streaming=False,
        api_key=endpoint.api_key,
        headers=endpoint.headers,
        method="GET",
    )
    data = head + request.tail("preflight", b"")
    try:
        exchanged = _exchange(reached, endpoint, data, ASIDE_TIMEOUT_S)
    except TargetError:
        return None
    module = registry.load("endpoints", endpoint.type)
    answer = read_answer(exchanged.raw, module, streaming=False, complete=exchanged.complete)
    return answer if 200 <= answer.status < 300 else None


def _description(headers: Mapping[str, str]) -> dict[str, Any]:
    """The headers by which servers name themselves."""
    return {name: printable(headers[name]) for name in ("server", "x-powered-by") if name in headers}


def _descriptions(reached: Reached, endpoint: EndpointConfig) -> dict[str, Any]:
    """What the server tells about version and flags, where it does."""
    found = {}
    for path in _DESCRIPTIONS:
        answer = _aside(reached, endpoint, path)
        if answer is None or len(answer.body) > 65536:
            continue
        try:
            found[path] = msgspec.json.decode(answer.body)
        except msgspec.DecodeError:
            continue
    return found
