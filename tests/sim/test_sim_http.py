from __future__ import annotations

import pytest

from loadstone.sim.http import Refused, Request, RequestReader, chunk, response

POST = b"POST /v1/x?y=1 HTTP/1.1\r\nHost: h\r\nX-Request-ID: A\xc3\xa9\r\nContent-Length: 4\r\n\r\nbody"
GET = b"GET /health HTTP/1.1\r\nConnection: close\r\n\r\n"


def test_a_request_is_the_same_at_every_split() -> None:
    whole = RequestReader().feed(POST)
    assert whole == [
        Request(
            "POST",
            "/v1/x",
            {"host": "h", "x-request-id": "A\u00c3\u00a9", "content-length": "4"},
            b"body",
            True,
            "y=1",
        )
    ]
    for at in range(1, len(POST)):
        reader = RequestReader()
        assert reader.feed(POST[:at]) + reader.feed(POST[at:]) == whole


def test_requests_may_follow_each_other_in_one_read() -> None:
    found = RequestReader().feed(POST + GET)
    assert [(r.method, r.path, r.keep_alive) for r in found] == [
        ("POST", "/v1/x", True),
        ("GET", "/health", False),
    ]


@pytest.mark.parametrize(
    "data",
    [
        b"\x16\x03\x01",
        b"GET / HTTP/1.1\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n",
        b"POST / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
    ],
)
def test_what_is_no_request_is_refused(data: bytes) -> None:
    with pytest.raises(Refused) as refusal:
        RequestReader().feed(data)
    assert refusal.value.status == 400


def test_an_endless_request_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("loadstone.sim.http.MAX_REQUEST_BYTES", 1000)
    reader = RequestReader()
    reader.feed(b"GET / HTTP/1.1\r\nA: ")
    with pytest.raises(Refused) as refusal:
        for _ in range(11):
            reader.feed(b"a" * 100)
    assert refusal.value.status == 413


def test_a_response_is_framed() -> None:
    head, _, body = response(404, b"{}", keep_alive=False).partition(b"\r\n\r\n")
    assert head.split(b"\r\n")[0] == b"HTTP/1.1 404 Not Found"
    assert {b"Content-Length: 2", b"Connection: close"} <= set(head.split(b"\r\n"))
    assert body == b"{}"
    assert chunk(b"x" * 17) == b"11\r\n" + b"x" * 17 + b"\r\n"
