"""What a configuration must be beyond the type and range of each key: keys that fit together.

One rule: a setting that would have no effect is an error, never ignored. A value that equals its default
asks for nothing, so it is always allowed; that keeps a written `config.toml` readable again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from ipaddress import IPv6Address
from types import ModuleType
from typing import Any

from loadstone import registry
from loadstone.config.options import by_path
from loadstone.config.pem import check_pem
from loadstone.config.secrets import masked
from loadstone.config.tree import ENGINE, Config
from loadstone.errors import UsageError, did_you_mean
from loadstone.wire import proxy, url
from loadstone.wire.request import parse_header
from loadstone.wire.url import ascii_host, is_path

_OURS = {"model": "--model", "stream": "--streaming", "messages": None, "prompt": None}
"""Request fields that are not extra, and the flag that sets them."""


def check(config: Config) -> Config:
    """The same configuration, when its parts fit together and the files it names can be used.

    Raises `UsageError` with the first contradiction found.
    """
    endpoint = registry.load("endpoints", config.endpoint.type)
    for path, why in _idle(config, endpoint):
        shown = "" if by_path()[path].secret else f" = {_shown(config, path)}"
        raise UsageError(f"{path}{shown}: {why}")
    _check_request(config)
    _check_way(config)
    return config


def check_goodput(config: Config, metrics: Collection[str]) -> None:
    """Raises `UsageError` for a limit on something that is not among the names of `metrics`."""
    for name in config.slo.goodput:
        if name not in metrics:
            advice = did_you_mean(name, metrics) or f"Known: {', '.join(sorted(metrics))}."
            raise UsageError(f"slo.goodput.{name}: there is no such metric. {advice}")


def _idle(config: Config, endpoint: ModuleType) -> Iterator[tuple[str, str]]:
    """Settings without effect: the path of each, and why."""
    rules = [*_idle_endpoint(config, endpoint), *_idle_way(config)]
    rules += [*_idle_input(config, endpoint), *_idle_load(config)]
    rules.append(("output.force", config.output.folder is None, "has no effect without --artifact-dir."))
    uncounted = config.input.tokenizer == "none" and config.output.check_tokens == "all"
    rules.append(("output.check_tokens", uncounted, "needs a tokenizer; leave out --tokenizer none."))
    for path, idle, why in rules:
        if idle and _value(config, path) != by_path()[path].default:
            yield path, why


Rule = tuple[str, bool, str]


def _idle_endpoint(config: Config, endpoint: ModuleType) -> list[Rule]:
    here, kind = config.endpoint, config.endpoint.type
    unstreamed = "has no effect without --streaming."
    return [
        ("endpoint.streaming", not endpoint.STREAMS, f"endpoint {kind} has no streams; leave it out."),
        ("endpoint.usage_per_chunk", not here.streaming, unstreamed),
        ("endpoint.first_token_timeout_s", not here.streaming, unstreamed),
        (
            "endpoint.first_token_timeout_s",
            here.first_token_timeout_s >= here.timeout_s,
            f"is never reached before endpoint.timeout_s = {here.timeout_s:g}; make it shorter.",
        ),
        (
            "endpoint.idle_timeout_s",
            here.idle_timeout_s >= here.timeout_s,
            f"is never reached before endpoint.timeout_s = {here.timeout_s:g}; make it shorter.",
        ),
        (
            "endpoint.legacy_max_tokens",
            kind != "chat",
            f"endpoint {kind} sends max_tokens anyway; it is for --endpoint-type chat.",
        ),
    ]


def _idle_way(config: Config) -> list[Rule]:
    """How the server is reached: TLS and proxy."""
    here = config.endpoint
    plain = not here.url.strip().lower().startswith("https:")
    untold = "has no effect without TLS; give --url https://... or leave it out."
    in_tls = ("insecure", "ca", "client_certificate", "client_key", "server_name")
    return [
        *((f"endpoint.{name}", plain, untold) for name in in_tls),
        ("endpoint.ca", here.insecure, "has no effect with --insecure, which accepts any certificate."),
        (
            "endpoint.client_key",
            here.client_certificate is None,
            "has no effect without --client-certificate.",
        ),
        (
            "endpoint.proxy",
            here.url.startswith(ENGINE),
            "has no effect on the built-in engine; leave it out.",
        ),
    ]


def _idle_input(config: Config, endpoint: ModuleType) -> list[Rule]:
    here, kind = config.input, config.endpoint.type
    return [
        ("input.osl_stddev", here.osl_mean is None, "has no effect without a mean; set --osl."),
        (
            "input.token_ids",
            not endpoint.TOKEN_IDS,
            f"endpoint {kind} takes no token ids; use --endpoint-type completions.",
        ),
        (
            "input.token_ids",
            here.tokenizer == "none",
            "needs a tokenizer; leave out --tokenizer none.",
        ),
        (
            "input.isl_includes_template",
            kind != "chat",
            f"endpoint {kind} has no chat template; leave it out.",
        ),
    ]


def _idle_load(config: Config) -> list[Rule]:
    here = config.load
    no_rate = "has no effect in a closed loop; set --request-rate or leave it out."
    return [
        ("load.arrival_pattern", here.request_rate is None, no_rate),
        ("load.arrival_smoothness", here.request_rate is None, no_rate),
        (
            "load.arrival_smoothness",
            here.arrival_pattern not in (None, "gamma"),
            f"has no effect on {here.arrival_pattern} arrivals; set --arrival-pattern gamma or leave it out.",
        ),
        (
            "load.grace_s",
            here.duration_s is None,
            "has no effect without --benchmark-duration; all answers are awaited anyway.",
        ),
    ]


def _check_request(config: Config) -> None:
    """The address, the headers and the extra fields make a request."""
    here = config.endpoint
    if not here.url.startswith(ENGINE):
        url.parse(here.url)
    if here.path is not None and not is_path(here.path):
        raise UsageError("endpoint.path: must be ASCII without spaces; percent-encode what is not.")
    if here.path is not None and "#" in here.path:
        raise UsageError("endpoint.path: holds a #, which no server is sent; leave out what follows it.")
    names = [parse_header(header)[0].lower() for header in here.headers]
    if here.api_key is not None and "authorization" in names:
        raise UsageError("endpoint.headers: Authorization is set by the API key too; give one of them.")
    if here.api_key is not None and not _sendable(here.api_key):
        where = "api_key_file" if here.api_key_file else "api_key"
        raise UsageError(
            f"endpoint.{where}: the key holds a space, a line break or another sign that no key has."
        )
    for name in here.extra_inputs.keys() & _OURS.keys():
        advice = f"use {_OURS[name]}." if _OURS[name] else "the prompts are made by loadstone."
        raise UsageError(f"endpoint.extra_inputs.{name}: is not an extra field; {advice}")


def _check_way(config: Config) -> None:
    """Proxy, name and files for TLS can be used."""
    here = config.endpoint
    if here.proxy is not None:
        proxy.parse(here.proxy)
    if here.server_name is not None and not _is_server_name(here.server_name):
        raise UsageError(
            f"endpoint.server_name = {here.server_name[:40]!r}: is no name of a host; leave scheme and port out."
        )
    check_pem(here)


def _is_server_name(text: str) -> bool:
    """Whether TLS can ask for it: a name, or an address."""
    try:
        if ":" in text:
            return bool(IPv6Address(text))
        name = ascii_host(text)
    except ValueError:
        return False
    return bool(name) and not name.startswith(".")


def _sendable(key: str) -> bool:
    return key.isascii() and key.isprintable() and " " not in key


def _value(config: Config, path: str) -> Any:
    section, _, name = path.partition(".")
    return getattr(getattr(config, section), name)


def _shown(config: Config, path: str) -> str:
    section, _, name = path.partition(".")
    value = masked(config)[section][name]
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:g}" if isinstance(value, float) else str(value)
