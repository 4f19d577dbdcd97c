"""One page, read once: in bounded time and size, with the reason where it cannot be."""

from __future__ import annotations

import gzip
import socket

import pytest

from loadstone.telemetry import ask as asking
from loadstone.telemetry.ask import ask
from loadstone.telemetry.job import PageJob

from .conftest import PAGE, http


def job(server, **more):
    address = (int(socket.AF_INET), ("127.0.0.1", server.port))
    return PageJob(
        name="page", serves=(0,), request=b"GET /metrics HTTP/1.1\r\n\r\n", addresses=[address], **more
    )


def test_a_page_is_read_whole(raw):
    server = raw(http(PAGE))
    read = ask(job(server))
    assert (read.text, read.status, read.fault) == (PAGE, 200, None)
    assert read.sent_ns < read.at_ns
    assert server.requests == [b"GET /metrics HTTP/1.1\r\n\r\n"]


def test_a_host_may_be_looked_up(raw):
    server = raw(http(PAGE))
    assert (
        ask(
            PageJob(
                name="page", serves=(), request=b"GET / HTTP/1.1\r\n\r\n", host="127.0.0.1", port=server.port
            )
        ).text
        == PAGE
    )


def test_a_compressed_page_is_unpacked(raw):
    server = raw(http(gzip.compress(PAGE.encode()), "200 OK", "Content-Encoding: gzip"))
    assert ask(job(server)).text == PAGE


def test_a_page_may_end_with_its_connection(raw):
    assert ask(job(raw(b"HTTP/1.0 200 OK\r\n\r\n" + PAGE.encode()))).text == PAGE


@pytest.mark.parametrize(
    ("answer", "status", "fault"),
    [
        (http("no", "404 Not Found"), 404, "HTTP 404"),
        (http("", "503 Service Unavailable"), 503, "HTTP 503"),
        (http(PAGE)[:-9], 200, "the page was cut short"),
        (b"HTTP/1.0 200 OK\r\n\r\nrunning 1", 200, "the page was cut short"),
        (
            http("a 1\n", "200 OK", "Content-Encoding: br"),
            200,
            "it is compressed, and could not be unpacked",
        ),
        (http(b"plain", "200 OK", "Content-Encoding: gzip"), 200, "it is compressed, and could"),
        (b"SSH-2.0-x\r\n", None, "its answer is not HTTP/1.1"),
        (b"", None, "it closed the connection without an answer"),
    ],
)
def test_why_there_is_no_page(raw, answer, status, fault):
    read = ask(job(raw(answer)))
    assert (read.text, read.status) == (None, status)
    assert read.fault.startswith(fault)


def test_a_page_that_unpacks_to_too_much_is_not_unpacked(raw, monkeypatch):
    monkeypatch.setattr(asking, "MOST_BYTES", 1 << 20)
    server = raw(http(gzip.compress(b"a 1\n" * 500_000), "200 OK", "Content-Encoding: gzip"))
    assert ask(job(server)).fault == "the page is larger than 1 MiB"


def test_a_server_that_says_nothing_is_not_waited_for_long(raw, monkeypatch):
    monkeypatch.setattr(asking, "ANSWER_S", 0.05)
    assert ask(job(raw(None))).fault == "no answer within 0.05 s"


def test_a_server_that_is_not_there_is_told():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    address = (int(socket.AF_INET), ("127.0.0.1", port))
    assert (
        ask(PageJob(name="page", serves=(0,), request=b"", addresses=[address])).fault == "Connection refused"
    )


def test_no_secret_is_told(raw):
    """Not even in small letters, as the name of an encoding is read."""
    server = raw(http("x", "200 OK", "Content-Encoding: sk-HUNTER2"))
    assert "hunter2" not in ask(job(server, hidden=["sk-HUNTER2"])).fault.lower()


def test_what_a_proxy_says_is_told_as_it_may_be_shown(raw):
    server = raw(b"HTTP/1.1 407 \x1b[31mno sk-hunter2\r\n\r\n")
    read = ask(job(server, tunnel=b"CONNECT a:1 HTTP/1.1\r\n\r\n", hidden=["sk-hunter2"]))
    assert read.fault == "HTTP 407 \\x1b[31mno ***"
