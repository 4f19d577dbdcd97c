"""Whether a request can be made as asked, and one beside the load: headers, fields, paths, shares of servers and models."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from types import ModuleType

from loadstone.config.rules import Rule
from loadstone.config.secrets import PATHS
from loadstone.config.tree import EndpointConfig, ServerConfig
from loadstone.errors import UsageError
from loadstone.wire.request import header_name, parse_header
from loadstone.wire.url import is_path, page_address

_OURS = {"model": "--model", "stream": "--streaming", "messages": None, "prompt": None}
"""Request fields that are not extra, and the flag that sets them."""


def request_without_effect(here: EndpointConfig, endpoint: ModuleType) -> Iterator[Rule]:
    """Settings of a request that nothing would come of."""
    unstreamed = "has no effect without --streaming."
    unreached = f"is never reached before endpoint.timeout_s = {here.timeout_s:g}; make it shorter."
    no_streams = f"endpoint {here.type} has no streams; leave it out."
    yield Rule("endpoint.streaming", not endpoint.STREAMS, no_streams)
    yield Rule("endpoint.usage_per_chunk", not here.streaming, unstreamed)
    yield Rule("endpoint.first_token_timeout_s", not here.streaming, unstreamed)
    for name in ("first_token_timeout_s", "idle_timeout_s"):
        yield Rule(f"endpoint.{name}", getattr(here, name) >= here.timeout_s, unreached)
    anyway = f"endpoint {here.type} sends max_tokens anyway; it is for --endpoint-type chat."
    yield Rule("endpoint.legacy_max_tokens", here.type != "chat", anyway)


def shares_without_effect(here: EndpointConfig) -> Iterator[Rule]:
    """Strategies and weights of servers and models that nothing is chosen by."""
    for kind, flag, names in (("url", "--url", here.urls), ("model", "--model", here.models)):
        one = f"has no effect on one {kind}; give several with {flag}."
        strategy = getattr(here, f"{kind}_strategy")
        yield Rule(f"endpoint.{kind}_strategy", len(names) < 2, one)
        yield Rule(f"endpoint.{kind}_weights", len(names) < 2, one)
        yield Rule(
            f"endpoint.{kind}_weights",
            strategy not in (None, "weighted"),
            f"has no effect with endpoint.{kind}_strategy = {strategy}; leave one of them out.",
        )


def server_without_effect(here: ServerConfig) -> Iterator[Rule]:
    """Settings of a question to the server that is not asked."""
    for name in ("wait_for_model_mode", "wait_for_model_interval_s"):
        why = "has no effect without --wait-for-model-timeout."
        yield Rule(f"server.{name}", not here.wait_for_model_s, why)
    for name in ("reset_kv_cache_path", "reset_kv_cache_timeout_s"):
        yield Rule(f"server.{name}", not here.reset_kv_cache, "has no effect without --reset-kv-cache.")
    for name in ("profiler_start_path", "profiler_stop_path"):
        yield Rule(f"server.{name}", not here.profiler, "has no effect without --server-profiler.")
    for name in ("metrics_urls", "metrics_interval_s"):
        yield Rule(f"server.{name}", not here.metrics, "has no effect with --no-server-metrics.")


def check_request(here: EndpointConfig, server: ServerConfig) -> None:
    """Raises `UsageError` unless names, headers, paths and extra fields make requests."""
    _check_shares(here)
    _check_headers(here)
    _check_path("endpoint.path", here.path)
    for name in PATHS:
        _check_path(f"server.{name}", getattr(server, name))
    for page in server.metrics_urls:
        page_address(page)
    for name in here.extra_inputs.keys() & _OURS.keys():
        advice = f"use {_OURS[name]}." if _OURS[name] else "the prompts are made by loadstone."
        raise UsageError(f"endpoint.extra_inputs.{name}: is not an extra field; {advice}")


def _check_shares(here: EndpointConfig) -> None:
    """Every model has a name of its own, and every server and every model a weight where one has."""
    if here.model is not None and len(here.models) != here.model.count(",") + 1:
        raise UsageError(f"endpoint.model = {here.model}: holds an empty name.")
    if twice := _twice(here.models):
        raise UsageError(f"endpoint.model: {twice} is given twice; for a greater share use --model-weights.")
    for kind, names in (("url", here.urls), ("model", here.models)):
        weights = getattr(here, f"{kind}_weights")
        if weights and len(weights) != len(names):
            shown = ",".join(f"{weight:g}" for weight in weights)
            raise UsageError(
                f"endpoint.{kind}_weights = {shown}: must be {len(names)} numbers, one for each {kind}."
            )
        if getattr(here, f"{kind}_strategy") == "weighted" and not weights:
            raise UsageError(f"endpoint.{kind}_strategy = weighted: needs --{kind}-weights.")


def _check_headers(here: EndpointConfig) -> None:
    """Headers can be sent, and none is given in two ways."""
    names = [parse_header(header)[0].lower() for header in here.headers]
    if here.api_key is not None and "authorization" in names:
        raise UsageError("endpoint.headers: Authorization is set by the API key too; give one of them.")
    if here.api_key is not None and not _sendable(here.api_key):
        where = "api_key_file" if here.api_key_file else "api_key"
        raise UsageError(
            f"endpoint.{where}: the key holds a space, a line break or another sign that no key has."
        )
    given = [(header_name(name), "session_headers") for name in here.session_headers]
    if here.session_end_header is not None:
        name, _ = parse_header(here.session_end_header, "endpoint.session_end_header")
        given.append((name, "session_end_header"))
    for name, key in given:
        if name.lower() in names:
            raise UsageError(f"endpoint.{key}: {name} is given twice.")
        names.append(name.lower())


def _check_path(key: str, path: str | None) -> None:
    """Shows nothing of the path: it may hold a key."""
    if path is not None and not is_path(path):
        raise UsageError(f"{key}: must be ASCII without spaces; percent-encode what is not.")
    if path is not None and "#" in path:
        raise UsageError(f"{key}: holds a #, which no server is sent; leave out what follows it.")


def _twice(names: Sequence[str]) -> str | None:
    return next((name for at, name in enumerate(names) if name in names[:at]), None)


def _sendable(key: str) -> bool:
    return key.isascii() and key.isprintable() and " " not in key
