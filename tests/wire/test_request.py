import pytest
from hypothesis import example, given
from hypothesis import strategies as st

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


# ---- conversations --------------------------------------------------------------------------------


def test_the_lines_of_a_conversation_stand_between_id_and_length() -> None:
    lines = request.session_lines(["X-Session-ID", "x-dynamo-session-id"], "abc-c0-12", None)
    assert lines == b"X-Session-ID: abc-c0-12\r\nx-dynamo-session-id: abc-c0-12\r\n"
    assert request.tail("abc-7", b"{}", lines) == (
        b"abc-7\r\nX-Session-ID: abc-c0-12\r\nx-dynamo-session-id: abc-c0-12\r\nContent-Length: 2\r\n\r\n{}"
    )


def test_the_last_turn_says_that_it_is_the_last() -> None:
    assert request.session_lines(["X-A"], "c0-1", "X-Session-End: true;é") == (
        b"X-A: c0-1\r\nX-Session-End: true;\xe9\r\n"
    )
    assert request.session_lines([], "c0-1", "X-Session-End:1") == b"X-Session-End: 1\r\n"


def test_without_headers_nothing_is_added() -> None:
    assert request.session_lines([], "c0-1", None) == b""
    assert request.tail("r", b"", b"") == request.tail("r", b"") == b"r\r\nContent-Length: 0\r\n\r\n"


@pytest.mark.parametrize(
    ("names", "end", "key"),
    [
        (["X A"], None, "endpoint.session_headers"),
        (["Host"], None, "endpoint.session_headers"),
        (["X-A"], "X-End", "endpoint.session_end_header"),
        (["X-A"], "X-End:a\r\nX-B: b", "endpoint.session_end_header"),
    ],
)
def test_a_line_that_would_break_the_request_is_refused(names: list[str], end: str | None, key: str) -> None:
    with pytest.raises(UsageError, match=rf"^{key}: "):
        request.session_lines(names, "c0-1", end)


@pytest.mark.parametrize("name", request.SESSION_HEADERS)
def test_known_headers_of_conversations_may_be_asked_for(name: str) -> None:
    assert request.header_name(f" {name} ") == name


@pytest.mark.parametrize(
    ("name", "words"),
    [
        (
            "",
            "endpoint.session_headers: what is given is no header's name; write a name such as X-Session-ID.",
        ),
        (
            "X: hunter2",
            "endpoint.session_headers: what is given is no header's name; write a name such as X-Session-ID.",
        ),
        ("X-Request-Id", "endpoint.session_headers: X-Request-Id is set by loadstone itself."),
        (
            "authorization",
            "endpoint.session_headers: authorization has another meaning; choose one such as X-Session-ID.",
        ),
        (
            "Proxy-Connection",
            "endpoint.session_headers: Proxy-Connection is for a proxy; "
            "give it as --proxy http://USER:PASSWORD@HOST:PORT.",
        ),
    ],
)
def test_a_name_that_no_conversation_may_have(name: str, words: str) -> None:
    with pytest.raises(UsageError) as error:
        request.header_name(name)
    assert str(error.value) == words


@given(header=st.builds("{}:{}".format, st.text("aX-", max_size=3), st.text(max_size=20)))
@example(header="X-End: a\x85b")
@example(header="X-End: a\x0bb")
def test_whatever_is_accepted_is_one_line(header: str) -> None:
    try:
        lines = request.session_lines([], "c0-1", header)
    except UsageError:
        return
    assert lines.endswith(b"\r\n")
    assert lines.count(b"\r") == lines.count(b"\n") == 1
    assert b":" in lines
