import pytest

from loadstone.errors import UsageError
from loadstone.wire import proxy, request, url

TARGET = url.parse("localhost:8000")


def test_a_request_is_head_id_length_and_body() -> None:
    head = request.head(TARGET, "/v1/chat/completions", streaming=True, api_key="k")
    lines = (head + request.tail("run-7", b"{}")).split(b"\r\n")
    assert lines[0] == b"POST /v1/chat/completions HTTP/1.1"
    assert lines[1] == b"Host: localhost:8000"
    assert lines[-5:] == [
        b"Authorization: Bearer k",
        b"X-Request-ID: run-7",
        b"Content-Length: 2",
        b"",
        b"{}",
    ]
    assert b"Accept: text/event-stream" in lines
    assert b"Accept-Encoding: identity" in lines


def test_a_question_is_asked_by_the_same_head_with_another_method() -> None:
    post, get = (
        request.head(TARGET, "/version", streaming=False, api_key="k", method=method)
        for method in ("POST", "GET")
    )
    assert get.startswith(b"GET /version HTTP/1.1\r\n")
    assert get.removeprefix(b"GET") == post.removeprefix(b"POST")


def test_a_header_of_the_user_replaces_ours_of_the_same_name() -> None:
    head = request.head(
        TARGET, "/", streaming=False, api_key="k", headers=["authorization: Token t", "X-A:b:c"]
    )
    assert b"authorization: Token t\r\nX-A: b:c\r\n" in head
    assert b"Bearer" not in head


@pytest.mark.parametrize(
    "header",
    [
        "novalue",
        ":x",
        "a b:c",
        "A:b\r\nC:d",
        "A\nB:b",
        "Host:x",
        "Content-Length: 3",
        "A:漢",
        "Ä:b",
        "Proxy-Authorization:b",
    ],
)
def test_a_header_that_would_break_the_request_is_refused(header: str) -> None:
    with pytest.raises(UsageError, match=r"endpoint\.headers"):
        request.head(TARGET, "/", streaming=False, api_key=None, headers=[header])


def test_a_proxy_is_told_the_whole_address_and_who_we_are() -> None:
    head = request.head(
        TARGET, "/v1/models?a=b", streaming=False, api_key=None, proxy=proxy.parse("http://us:pw@p:3128")
    )
    lines = head.split(b"\r\n")
    assert lines[:2] == [b"POST http://localhost:8000/v1/models?a=b HTTP/1.1", b"Host: localhost:8000"]
    assert b"Proxy-Authorization: Basic dXM6cHc=" in lines


def test_what_goes_through_a_tunnel_has_nothing_for_the_proxy() -> None:
    target = url.parse("https://host")
    plain, tunnelled = (
        request.head(target, "/x", streaming=False, api_key=None, proxy=by)
        for by in (None, proxy.parse("http://us:pw@p:3128"))
    )
    assert plain == tunnelled


def test_a_refused_header_does_not_show_its_value() -> None:
    for header in ("Authori zation:secret", "secret"):
        with pytest.raises(UsageError) as error:
            request.parse_header(header)
        assert "secret" not in str(error.value)


def test_a_connection_for_one_request_is_closed_by_the_server() -> None:
    assert b"\r\nConnection: close\r\n" in request.head(
        TARGET, "/v1", streaming=True, api_key=None, closes=True
    )
    assert b"Connection" not in request.head(TARGET, "/v1", streaming=True, api_key=None)
