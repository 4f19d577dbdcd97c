from __future__ import annotations

import pytest

from loadstone.errors import UsageError
from loadstone.wire import proxy, url


@pytest.mark.parametrize(
    ("address", "host", "port", "authorization"),
    [
        ("http://p:3128", "p", 3128, ""),
        ("p:3128/", "p", 3128, ""),
        ("http://[::1]:80", "::1", 80, ""),
        ("http://us:pw@p:1", "p", 1, "Basic dXM6cHc="),
        ("http://us:p%40%3a@p:1", "p", 1, "Basic dXM6cEA6"),
        ("us@p:1", "p", 1, "Basic dXM6"),
        ("http://B\u00fccher.example:1", "xn--bcher-kva.example", 1, ""),
    ],
)
def test_what_an_address_means(address, host, port, authorization):
    found = proxy.parse(address)
    assert (found.host, found.port, found.authorization) == (host, port, authorization)


def test_its_address_is_shown_without_user_and_password():
    assert proxy.parse("http://us:pw@[::1]:3128").url == "http://[::1]:3128"


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("socks5://us:secret@p:1", "only proxies that are spoken to in plain HTTP"),
        ("https://us:secret@p:1", "only proxies that are spoken to in plain HTTP"),
        ("http://us:secret@p", "has no port"),
        ("http://us:secret@:1", "has no host"),
        ("http://us:secret@p:99999", "is not an address"),
        ("http://us:secret@p:1/x", "has more than host and port"),
        ("http://us:secret@p:1?x", "has more than host and port"),
        ("http://us:secret x@p:1", "holds a space"),
        ("http://us:secret@a..b:1", "is not an address"),
    ],
)
def test_what_is_no_proxy_is_refused_without_being_shown(address, words):
    with pytest.raises(UsageError) as refused:
        proxy.parse(address)
    assert str(refused.value).startswith(f"endpoint.proxy: {words}")
    assert str(refused.value).endswith("if the proxy asks for them.")
    assert "secret" not in str(refused.value)


def test_the_request_for_a_tunnel_names_the_port_always():
    lines = proxy.tunnel(url.parse("https://host"), proxy.parse("us:pw@p:1")).split(b"\r\n")
    assert lines[:2] == [b"CONNECT host:443 HTTP/1.1", b"Host: host:443"]
    assert lines[-3:] == [b"Proxy-Authorization: Basic dXM6cHc=", b"", b""]


def test_a_tunnel_to_an_ipv6_address():
    asked = proxy.tunnel(url.parse("https://[::1]:8443"), proxy.parse("p:1"))
    assert asked.startswith(b"CONNECT [::1]:8443 HTTP/1.1\r\n")
    assert b"Proxy-Authorization" not in asked


@pytest.mark.parametrize(
    "line", ["HTTP/1.1 200 Connection established", "HTTP/1.0 200", b"HTTP/1.1 202 x", b"HTTP/1.1 299"]
)
def test_any_2xx_opens_the_tunnel(line):
    assert proxy.accepted(line)


@pytest.mark.parametrize(
    "line",
    [
        "HTTP/1.1 407 Who?",
        "HTTP/1.1 302 200",
        "HTTP/2 200",
        "HTTP/1.1 20",
        "HTTP/1.1 2000",
        b"",
        b"SSH-2.0-x 200",
        b"HTTP/1.1 \xff",
    ],
)
def test_nothing_else_opens_it(line):
    assert not proxy.accepted(line)
