"""Where a redirect leads."""

from __future__ import annotations

import pytest

from loadstone.wire.redirect import moved

REQUEST = b"POST /v1/chat/completions HTTP/1.1\r\nHost: host:8000\r\n\r\n{}"


def answer(location):
    return b"HTTP/1.1 307 Temporary Redirect\r\nLocation: %b\r\nContent-Length: 0\r\n\r\n" % location


def target(location, request=REQUEST, authority="host:8000", tls=False):
    new = moved(request, answer(location), authority, tls=tls)
    if new is None:
        return None
    assert new.partition(b"HTTP/1.1")[2] == request.partition(b"HTTP/1.1")[2]
    return new.split(b" ")[1]


@pytest.mark.parametrize(
    ("location", "path"),
    [
        (b"/v2/chat", b"/v2/chat"),
        (b"http://host:8000/v2/chat?a=b", b"/v2/chat?a=b"),
        (b"HTTP://HOST:8000/v2", b"/v2"),
        (b"embeddings", b"/v1/chat/embeddings"),
        (b"//host:8000/x", b"/x"),
        (b"http://host:8000", b"/"),
        (b"/x#part", b"/x"),
    ],
)
def test_the_same_server_is_followed(location, path):
    assert target(location) == path


@pytest.mark.parametrize(
    "location",
    [
        b"http://other:8000/v1", b"http://host:8001/v1", b"https://host:8000/v1", b"//other/x", b"ftp://host:8000/x",
        b"http://user:pw@host:8000/x", b"http://[bad/", b"http://host:99999/", b"/with space", "/\u00fc".encode(), b"/\x01",
    ],
)  # fmt: skip
def test_nowhere_else(location):
    assert target(location) is None


def test_default_ports_are_the_same_server():
    request = REQUEST.replace(b"host:8000", b"host")
    assert target(b"https://host:443/x", request, "host", tls=True) == b"/x"
    assert target(b"http://host:80/x", request, "host") == b"/x"


def test_no_location_is_no_redirect():
    assert moved(REQUEST, b"HTTP/1.1 307 Moved\r\nContent-Length: 0\r\n\r\n", "host:8000", tls=False) is None


def test_a_request_to_a_proxy_names_its_target_in_full():
    request = REQUEST.replace(b"POST /v1", b"POST http://host:8000/v1")
    assert target(b"/x", request) == b"http://host:8000/x"
