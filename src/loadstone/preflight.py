"""The preflight: one small request before the run, so that what is wrong is said at once and in the server's words.

It uses the endpoint, the head and the framing of the run itself, with another prompt, an id of its own and a
limit of one token, or of a few where the server wants more. On the way the model's name (when none was given), the server's description of
itself and the length of its chat template are learned.

One attempt, with three exceptions: a redirect within the server is followed once, as the run does; a refusal that
names the limit is answered with a greater one, once; and a field that the server names in its refusal, and that the
answers can do without (`_OPTIONAL`), is left out, here and in the run.
"""

from __future__ import annotations

import re
import ssl
from collections.abc import Callable, Container, Mapping
from typing import Any, NamedTuple

import msgspec

from loadstone import registry
from loadstone.config import EndpointConfig, hide, hide_all, secrets
from loadstone.endpoints import Ask
from loadstone.errors import TargetError
from loadstone.folder import PreflightLog
from loadstone.load import once
from loadstone.load.once import Exchange
from loadstone.load.reach import CERTIFICATE_WANTED, Reached, connect, of_tls, reach
from loadstone.plan.turn import Turn
from loadstone.read.answer import Answer, read_answer
from loadstone.read.hidden import without
from loadstone.terminal import fit, printable
from loadstone.wire import request
from loadstone.wire.redirect import FOLLOWED, moved
from loadstone.wire.url import Target, shown

__all__ = ["ASIDE_TIMEOUT_S", "CONTENT_TOKENS", "Preflight", "Reached", "first_model", "preflight", "reach"]

CONTENT_TOKENS = 16
ASIDE_TIMEOUT_S = 2.0
"""For questions a server need not know the answer to."""
_DESCRIPTIONS = ("/version", "/get_server_info")
_LIMITS = ("max_tokens", "max_completion_tokens", "min_tokens", "max_new_tokens")
"""Fields that would ask for more than one token if the user's extra inputs set them."""
_OF_LENGTH = re.compile(r"(?<!\w)max_(completion_|new_|output_)?tokens(?!\w)")
"""How a refusal names the limit, whether it means the field or that one token is too few."""
_ENOUGH_TOKENS = 16
"""As many as any server wants to be asked for."""
_OPTIONAL = {
    "continuous_usage_stats": "so there are no running token counts",
    "stream_options": "so streams bring no usage unless the server sends it unasked",
    "ignore_eos": "so answers may end before the length asked for",
    "min_tokens": "so answers may end before the length asked for",
    "max_completion_tokens": "and max_tokens is sent instead",
}
"""Fields that a run can do without, and what comes of it."""
_INNER = {"continuous_usage_stats": "stream_options"}
"""Fields within another one, which is named with them."""
_INVALID = (400, 422)
_REDIRECTS = range(300, 400)
_FOLLOWED_BY_GET = FOLLOWED | {301, 302, 303}
_MODELS = "/v1/models"
_UNLISTED = (404, 405)
"""What a server says that lists no models."""
_WORDS_CELLS = 160


class Preflight(NamedTuple):
    """What the preflight found."""

    log: PreflightLog
    server: dict[str, Any]
    """Headers and self-descriptions by which the server can be recognised."""
    ask: Ask
    """What to ask for in the run: as given, without the fields that the server does not take."""
    notices: tuple[str, ...] = ()
    """What a reader of the report has to know of it."""


class _Answered(NamedTuple):
    """One request and what came back."""

    body: dict[str, Any]
    answer: Answer
    latency_ns: int
    path: str
    """Where the answer came from: the path asked, or the one it redirected to."""


def first_model(reached: Reached, endpoint: EndpointConfig) -> str:
    """The first model that the server lists. Raises `TargetError`, with the server's own words where it refuses."""
    answer = _listing(reached, endpoint)
    where, hidden = reached.target.url, secrets(endpoint)
    if 200 <= answer.status < 300 and (name := _first_id(answer.body)) is not None:
        if endpoint.api_key and endpoint.api_key in name:
            raise TargetError(
                f"{where} lists a model whose name holds the key it was sent. Name the model with --model."
            )
        return name
    said = printable(hide(answer.fault or "", hidden))
    if answer.status not in _UNLISTED and (advice := _advice(reached, answer, hidden)):
        raise TargetError(
            f"{where}: the request for its models to {_MODELS} failed: {said.rstrip('.')}. {advice}"
        )
    why = "" if 200 <= answer.status < 300 else f" ({said.rstrip('.')})"
    raise TargetError(f"{where} does not list its models at {_MODELS}{why}. Name the model with --model.")


def _first_id(body: bytes) -> str | None:
    try:
        name = msgspec.json.decode(body)["data"][0]["id"]
    except (msgspec.DecodeError, RecursionError, LookupError, TypeError):
        return None
    return name if isinstance(name, str) else None


def _listing(reached: Reached, endpoint: EndpointConfig) -> Answer:
    """What the server answers when it is asked for its models; a redirect within it is followed once."""
    data = _head(reached, endpoint, reached.target.path(_MODELS), "GET", False)
    data += request.tail("preflight", b"")

    def send(data: bytes) -> Answer:
        try:
            exchanged = _exchange(reached, endpoint, data, _patience_s(endpoint))
        except TargetError as error:
            raise TargetError(
                f"{error} It was asked for its models; --model NAME saves the question."
            ) from None
        return _document(exchanged, endpoint)

    answer = send(data)
    onward = _onward(reached, data, answer, _FOLLOWED_BY_GET)
    return send(onward) if onward else answer


def preflight(
    reached: Reached, endpoint: EndpointConfig, ask: Ask, path: str, turn: Turn, request_id: str
) -> Preflight:
    """Sends the one request and reads its answer. Raises `TargetError` with the server's own words."""
    hidden = secrets(endpoint)
    notices = []
    tokens, too_few = 1, ""
    while True:
        answered = _asked(reached, endpoint, ask, path, turn, request_id, tokens)
        answer = answered.answer
        if answer.fault is None or _is_merely_empty(answer):
            break
        words = fit(printable(hide(answer.fault, hidden)), _WORDS_CELLS)
        if tokens < _ENOUGH_TOKENS and answer.status in _INVALID and _OF_LENGTH.search(answer.excerpt):
            tokens, too_few = _ENOUGH_TOKENS, words
            continue
        too_few = ""
        field = _named(answer, answered.body, ask)
        if field is None:
            raise TargetError(_refusal(reached, path, ask.model, answer, hidden))
        notices.append(
            f"The server does not take {field} ({words}): it is left out of every request, {_OPTIONAL[field]}."
        )
        ask = _ask_without(ask, field)
    if too_few:
        notices.append(
            f"The server does not answer when it may send one token only ({too_few}): the preflight asked for {tokens}."
        )
    if answered.path != path:
        notices.append(_of_redirect(reached.target, path, answered.path, hidden))
    if _is_merely_empty(answer):
        notices.append("The answer to the preflight holds no token that is shown.")
    usage = answer.reply.usage if answer.reply else None
    log = PreflightLog(
        request_id=request_id,
        http_status=answer.status,
        latency_ms=answered.latency_ns / 1e6,
        content_tokens=turn.isl_tokens or 0,
        prompt_tokens=usage.prompt_tokens if usage else None,
    )
    server = {**_description(answer.headers), **_descriptions(reached, endpoint)}
    try:
        known = hide_all(server, hidden)
    except RecursionError:  # it nests without end; a server need not be described
        known = _description(answer.headers)
    return Preflight(log, known, ask, tuple(notices))


def _asked(
    reached: Reached,
    endpoint: EndpointConfig,
    ask: Ask,
    path: str,
    turn: Turn,
    request_id: str,
    tokens: int,
) -> _Answered:
    """One request for so many tokens and its answer; a redirect within the server is followed once."""
    module = registry.load("endpoints", endpoint.type)
    body = module.body([msgspec.structs.replace(turn, max_tokens=tokens)], _limited(ask, tokens))
    data = _head(reached, endpoint, path, "POST", ask.streaming)
    data += request.tail(request_id, msgspec.json.encode(body))
    ended = module.ended if ask.streaming else None

    def send(data: bytes, path: str) -> _Answered:
        exchanged = _exchange(reached, endpoint, data, _patience_s(endpoint), ended)
        answer = _read(exchanged, endpoint, streaming=ask.streaming)
        return _Answered(body, answer, exchanged.latency_ns, path)

    first = send(data, path)
    onward = _onward(reached, data, first.answer, FOLLOWED)
    if onward is None:
        return first
    return send(onward, onward.split(b" ", 2)[1].decode("ascii").removeprefix(reached.target.origin))


def _patience_s(endpoint: EndpointConfig) -> float:
    return min(endpoint.timeout_s, endpoint.first_token_timeout_s)


def _read(exchanged: Exchange, endpoint: EndpointConfig, *, streaming: bool) -> Answer:
    """The meaning of an answer. What is wrong with one will be told, perhaps cut short: nothing secret may be in it
    by then, but for its headers, since a redirect is followed as it is.
    """
    module = registry.load("endpoints", endpoint.type)
    answer = read_answer(exchanged.raw, module, streaming=streaming, complete=exchanged.complete)
    if answer.fault is None:
        return answer
    raw = without([exchanged.raw], secrets(endpoint))[0]
    cleaned = read_answer(raw, module, streaming=streaming, complete=exchanged.complete)
    return cleaned._replace(headers=answer.headers)


def _onward(reached: Reached, data: bytes, answer: Answer, followed: Container[int]) -> bytes | None:
    """The request `data` to where the answer redirects it within the server; None unless it does."""
    location = answer.headers.get("location", "").encode("latin-1", "replace")
    if answer.status not in followed or not location:
        return None
    target = reached.target
    return moved(data, b"\r\nlocation: " + location, target.authority, tls=target.tls)


def _of_redirect(target: Target, path: str, onward: str, hidden: list[str]) -> str:
    """What a reader has to know of a redirect that was followed, and the flags that save it."""
    old, _, old_query = path.partition("?")
    new, _, new_query = onward.partition("?")
    other = new_query not in ("", old_query)
    shown_new = fit(hide(new, hidden), _WORDS_CELLS)
    if new.startswith(f"{target.prefix}/"):
        flags = f"--endpoint {shown_new.removeprefix(target.prefix)}"
    else:
        flags = f"--url {target.origin} --endpoint {shown_new}"
    return (
        f"The server redirects {old} to {shown_new}{' with another query' if other else ''}, so every request is sent "
        f"twice; give {flags}{' and that query' if other else ''}."
    )


def _limited(ask: Ask, tokens: int) -> Ask:
    """What to ask for, whatever limits the user's extra inputs set."""
    extra = {
        name: tokens if name in _LIMITS and value is not None else value for name, value in ask.extra.items()
    }
    return msgspec.structs.replace(ask, extra=extra)


def _is_merely_empty(answer: Answer) -> bool:
    """Whether the answer is over, and held nothing: the one token it may have had was of a kind without text."""
    reply = answer.reply
    good = reply is not None and bool(reply.finish_reason) and not reply.brought and not reply.error
    return good and 200 <= answer.status < 300


def _named(answer: Answer, body: Mapping[str, Any], ask: Ask) -> str | None:
    """The optional field of `body` that the server's refusal names first, rather than the field around it; None when
    it names none.
    """
    if answer.status not in _INVALID:
        return None
    places = {}
    for field in _OPTIONAL:
        found = re.search(rf"(?<!\w){field}(?!\w)", answer.excerpt)
        if found and _can_go(field, body, ask):
            places[field] = found.start()
    for inner in _INNER.keys() & places.keys():
        places.pop(_INNER[inner], None)
    return min(places, key=places.__getitem__) if places else None


def _can_go(field: str, body: Mapping[str, Any], ask: Ask) -> bool:
    """Whether it was sent, and `_ask_without` knows the way to send it no more."""
    if field == "continuous_usage_stats":
        return ask.usage_per_chunk and "stream_options" in body and "stream_options" not in ask.extra
    return field in body and (field != "max_completion_tokens" or field not in ask.extra)


def _ask_without(ask: Ask, field: str) -> Ask:
    match field:
        case "max_completion_tokens":
            return msgspec.structs.replace(ask, legacy_max_tokens=True)
        case "continuous_usage_stats":
            return msgspec.structs.replace(ask, usage_per_chunk=False)
        case _:
            return msgspec.structs.replace(ask, extra={**ask.extra, field: None})


def _refusal(reached: Reached, path: str, model: str, answer: Answer, hidden: list[str]) -> str:
    target = reached.target
    where = f"{target.url}: the preflight request to {path.partition('?')[0]} for model {printable(model)!r} failed"
    said = printable(hide(answer.fault or "", hidden))
    return f"{where}: {said.rstrip('.')}. {_advice(reached, answer, hidden)}".rstrip()


def _advice(reached: Reached, answer: Answer, hidden: list[str]) -> str:
    """What to do about a refusal; empty when its status says nothing about that."""
    if answer.status in _REDIRECTS and (location := answer.headers.get("location")):
        to = fit(shown(printable(hide(location, hidden))), _WORDS_CELLS)
        return f"It leads to {to}; give that address with --url and --endpoint."
    if answer.status in (502, 503, 504) and reached.proxy:
        return "Can the proxy reach the server?"
    return {
        401: "Give a valid key with --api-key.",
        403: "Give a valid key with --api-key.",
        404: "Check --url, --endpoint-type and --model.",
        405: "Check --url and --endpoint-type.",
        407: "Give user and password: --proxy http://USER:PASSWORD@HOST:PORT.",
    }.get(answer.status, "")


def _head(reached: Reached, endpoint: EndpointConfig, path: str, method: str, streaming: bool) -> bytes:
    return request.head(
        reached.target,
        path,
        streaming=streaming,
        api_key=endpoint.api_key,
        headers=endpoint.headers,
        method=method,
        proxy=reached.proxy,
    )


def _exchange(
    reached: Reached,
    endpoint: EndpointConfig,
    data: bytes,
    timeout_s: float,
    ended: Callable[[bytes], bool] | None = None,
) -> Exchange:
    where = reached.target.url
    with connect(reached, endpoint) as sock:
        try:
            exchanged = once.exchange(sock, data, timeout_s, ended)
        except ssl.SSLError as error:
            raise TargetError(f"{where}: {of_tls(error, agreed=True)}") from None
        except ConnectionError as error:
            advice = f" {CERTIFICATE_WANTED}" if reached.tls else ""
            raise TargetError(f"{where}: {error.strerror or error}.{advice}") from None
        except OSError as error:
            raise TargetError(f"{where}: {error.strerror or error}.") from None
    if not exchanged.raw:
        raise TargetError(f"{where} closed the connection without an answer.")
    return exchanged


def _aside(reached: Reached, endpoint: EndpointConfig, path: str) -> Answer | None:
    """A GET whose answer may be missing; None unless it is a success."""
    data = _head(reached, endpoint, reached.target.path(path), "GET", False) + request.tail("preflight", b"")
    try:
        exchanged = _exchange(reached, endpoint, data, ASIDE_TIMEOUT_S)
    except TargetError:
        return None
    answer = _document(exchanged, endpoint)
    return answer if 200 <= answer.status < 300 else None


def _document(exchanged: Exchange, endpoint: EndpointConfig) -> Answer:
    """The answer to a GET: a success as it came."""
    module = registry.load("endpoints", endpoint.type)
    answer = read_answer(exchanged.raw, module, streaming=False, complete=exchanged.complete)
    return answer if 200 <= answer.status < 300 else _read(exchanged, endpoint, streaming=False)


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
        except (msgspec.DecodeError, RecursionError):
            continue
    return found
