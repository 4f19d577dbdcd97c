"""The C token server: what it sends, and that its log is what it sent."""

from __future__ import annotations

import http.client
import json
import shutil
import socket
import time
from pathlib import Path
from typing import Any

import pytest
from bench.tokens import TokenServer

pytestmark = pytest.mark.skipif(not shutil.which("gcc"), reason="the token server is compiled with gcc")
CHAT = "/v1/chat/completions"


def call(server: TokenServer, path: str, body: Any = None, request_id: str = "r") -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)
    data = None if body is None else json.dumps(body)
    connection.request("GET" if body is None else "POST", path, data, {"X-Request-ID": request_id})
    answer = connection.getresponse()
    found = answer.status, answer.read()
    connection.close()
    return found


@pytest.mark.parametrize("step_us", [0, 1000])
def test_a_stream_has_the_tokens_asked_for_and_the_log_says_so(tmp_path: Path, step_us: int) -> None:
    before_ns = time.monotonic_ns()
    with TokenServer(step_us, 0, 8, tmp_path / "log") as server:
        _, whole = call(server, CHAT, {"stream": True})
        _, short = call(server, CHAT, {"stream": True, "max_completion_tokens": 3})
        _, capped = call(server, CHAT, {"stream": True, "max_tokens": 99})
    after_ns = time.monotonic_ns()
    assert [text.count(b'"content":" token"') for text in (whole, short, capped)] == [8, 3, 8]
    assert b'"usage":{"prompt_tokens":128,"completion_tokens":3,"total_tokens":131}' in short
    assert short.endswith(b"data: [DONE]\n\n")
    rows = server.rows()
    assert [(row.tokens, row.whole) for row in rows] == [(8, True), (3, True), (8, True)]
    for row in rows:
        assert before_ns <= row.read_ns <= row.first_ns <= row.last_ns <= after_ns
        assert row.received_ns <= row.read_ns


def test_an_answer_without_a_stream_comes_at_once(tmp_path: Path) -> None:
    with TokenServer(1_000_000, 0, 4, tmp_path / "log") as server:
        status, body = call(server, CHAT, {"max_tokens": 2})
    answer = json.loads(body)
    assert status == 200
    assert answer["choices"][0]["message"]["content"] == " token token"
    assert answer["usage"]["completion_tokens"] == server.rows()[0].tokens == 2


def test_the_log_knows_requests_by_id_and_body(tmp_path: Path) -> None:
    with TokenServer(0, 0, 1, tmp_path / "log") as server:
        for request_id, body in (("a", {"x": 1}), ("b", {"x": 1}), ("c", {"x": 2})):
            call(server, CHAT, body, request_id)
    a, b, c = server.rows()
    assert [row.request_id for row in (a, b, c)] == ["a", "b", "c"]
    assert a.body_hash == b.body_hash != c.body_hash


def test_the_small_paths(tmp_path: Path) -> None:
    with TokenServer(0, 0, 1, None) as server:
        assert json.loads(call(server, "/v1/models")[1])["data"][0]["id"] == "tokens"
        assert call(server, "/health")[0] == 200
        assert call(server, "/other")[0] == 404


def test_a_client_that_leaves_is_on_record(tmp_path: Path) -> None:
    with TokenServer(1000, 0, 1_000_000, tmp_path / "log") as server:
        with socket.create_connection(("127.0.0.1", server.port), timeout=10) as sock:
            sock.sendall(b'POST /v1/chat/completions HTTP/1.1\r\nContent-Length: 15\r\n\r\n{"stream":true}')
            assert sock.recv(100).startswith(b"HTTP/1.1 200 OK")
        call(server, "/health")
    (row,) = server.rows()
    assert not row.whole
    assert row.request_id == "-"
    assert 1 <= row.tokens < 1_000_000


def test_a_client_that_reads_slowly_gets_everything() -> None:
    with TokenServer(0, 0, 50_000, None) as server, socket.socket() as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        sock.settimeout(10)
        sock.connect(("127.0.0.1", server.port))
        sock.sendall(b'POST /v1/chat/completions HTTP/1.1\r\nContent-Length: 15\r\n\r\n{"stream":true}')
        assert call(server, "/health")[0] == 200
        found = bytearray()
        while not found.endswith(b"0\r\n\r\n"):
            found += sock.recv(1 << 20)
    assert found.count(b'"content":" token"') == 50_000


def test_a_running_server_tells_its_cpu_time() -> None:
    with TokenServer(0, 0, 1, None) as server:
        assert 0 <= server.cpu_s() < 5
