"""The configuration as it may be shown and stored: without its secrets.

One rule: what leaves the process (report, config.toml, command line, log) comes through here.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from loadstone.config.tree import Config, EndpointConfig

MASK = "***"

_SECRET_NAME = re.compile(r"auth|key|token|secret|cookie|passw|credential|signature", re.IGNORECASE)
"""Names of headers and query parameters whose values are masked: rather one too many."""
_QUERY = re.compile(r"(?<=[?&])([^=&]+)=([^&#]+)")


def masked(config: Config) -> dict[str, Any]:
    """The tree as plain values, every secret replaced by `***`."""
    tree: dict[str, Any] = msgspec.to_builtins(config)
    endpoint = tree["endpoint"]
    endpoint["url"] = _masked_url(config.endpoint.url)
    endpoint["api_key"] = MASK if config.endpoint.api_key else None
    endpoint["headers"] = [_masked_header(header) for header in config.endpoint.headers]
    return tree


def dump_toml(config: Config) -> str:
    """The tree as a config file, secrets masked. TOML has no null: keys that are not set are left out."""
    import tomli_w  # only a run that writes its folder needs it

    tree = masked(config)
    extra = tree["endpoint"]["extra_inputs"]
    if _holds_null(extra):
        tree["endpoint"]["extra_inputs"] = msgspec.json.encode(extra).decode()
    set_keys = {
        section: {name: value for name, value in leaves.items() if value is not None}
        for section, leaves in tree.items()
    }
    return tomli_w.dumps(set_keys)


def masked_command(arguments: Sequence[str], config: Config) -> str:
    """The command line to copy: quoted for a shell, every secret of `config` replaced by `***`."""
    hidden = secrets(config.endpoint)
    return shlex.join(_without(argument, hidden) for argument in arguments)


def secrets(endpoint: EndpointConfig) -> list[str]:
    """Every secret of a request, in every spelling; what holds another comes before it."""
    return sorted(set(_secrets(endpoint)), key=len, reverse=True)


def _without(text: str, hidden: Sequence[str]) -> str:
    for secret in hidden:
        text = text.replace(secret, MASK)
    return text


def _secrets(endpoint: EndpointConfig) -> Iterator[str]:
    """Every secret, as it is and as JSON spells it (`--set endpoint.api_key="..."`)."""
    headers = (header.partition(":") for header in endpoint.headers)
    found = [value.strip() for name, _, value in headers if _SECRET_NAME.search(name)]
    found += [value for name, value in _QUERY.findall(endpoint.url) if _SECRET_NAME.search(name)]
    for secret in filter(None, [endpoint.api_key, *found]):
        yield secret
        yield msgspec.json.encode(secret).decode()[1:-1]


def _masked_header(header: str) -> str:
    name, _, _ = header.partition(":")
    return f"{name}: {MASK}" if _SECRET_NAME.search(name) else header


def _masked_url(url: str) -> str:
    return _QUERY.sub(
        lambda pair: f"{pair[1]}={MASK if _SECRET_NAME.search(pair[1]) else pair[2]}",
        url,
    )


def _holds_null(value: Any) -> bool:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return value is None or any(map(_holds_null, inner))
