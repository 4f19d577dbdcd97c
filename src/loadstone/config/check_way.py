"""Whether the servers can be reached as asked: addresses, TLS, proxy."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import IPv6Address

from loadstone.config.pem import check_pem
from loadstone.config.rules import Rule
from loadstone.config.tree import ENGINE, EndpointConfig
from loadstone.errors import UsageError
from loadstone.wire import proxy, url
from loadstone.wire.url import Target, ascii_host

_IN_TLS = ("insecure", "ca", "client_certificate", "client_key", "server_name")


def way_without_effect(here: EndpointConfig) -> Iterator[Rule]:
    """Settings of TLS and proxy that none of the servers has any use for."""
    plain = not any(address.strip().lower().startswith("https:") for address in here.urls)
    untold = "has no effect without TLS; give --url https://... or leave it out."
    yield from (Rule(f"endpoint.{name}", plain, untold) for name in _IN_TLS)
    insecure = "has no effect with --insecure, which accepts any certificate."
    yield Rule("endpoint.ca", here.insecure, insecure)
    alone = here.client_certificate is None
    yield Rule("endpoint.client_key", alone, "has no effect without --client-certificate.")
    built_in = all(address.startswith(ENGINE) for address in here.urls)
    yield Rule(
        "endpoint.virtual", not built_in, "needs the built-in engine; give --url sim: or leave it out."
    )
    yield Rule("endpoint.proxy", built_in, "has no effect on the built-in engine; leave it out.")


def check_way(here: EndpointConfig) -> None:
    """Raises `UsageError` unless addresses, proxy, name and files for TLS can be used."""
    _check_urls(here)
    if here.proxy is not None:
        proxy.parse(here.proxy)
    if here.server_name is not None and not _is_server_name(here.server_name):
        raise UsageError(
            f"endpoint.server_name = {here.server_name[:40]!r}: is no name of a host; leave scheme and port out."
        )
    check_pem(here)


def _check_urls(here: EndpointConfig) -> None:
    """Every address means a server, and no two the same; engines are each one of their own."""
    found: list[Target] = []
    for address in here.urls:
        if address.startswith(ENGINE):
            continue
        target = url.parse(address)
        if target in found:
            raise UsageError(
                f"endpoint.url: {target.url} is given twice; for a greater share use --url-weights."
            )
        found.append(target)


def _is_server_name(text: str) -> bool:
    """Whether TLS can ask for it: a name, or an address."""
    try:
        if ":" in text:
            return bool(IPv6Address(text))
        name = ascii_host(text)
    except ValueError:
        return False
    return bool(name) and not name.startswith(".")
