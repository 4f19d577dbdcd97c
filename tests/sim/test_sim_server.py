"""The server over real sockets: what it says, and that its ground truth is what happened."""

from __future__ import annotations

import http.client
import json
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from loadstone.errors import UsageError
from loadstone.sim.loop import Server
from loadstone.sim.options import SimOptions
from loadstone.sim.truth import TruthRow, read_truth

FAST = {"step_ms": 1.0, "step_us_per_sequence": 0.0, "prefill_us_per_token": 0.0}
Start = Callable[..., Server]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts servers that write their truth to `tmp_path / "truth"`; stops them at the end."""
    running: list[tuple[Server, threading.Thread]] = []

    def begin(**options: Any) -> Server:
        server = Server(SimOptions(**{**FAST, "truth": str(tmp_path / "truth"), **options}))
        thread = threading.Thread(target=server.run)
        thread.start()
        running.append((server, thread))
        return server

    yield begin
    for server, thread in running:
        stop(server, thread)


def stop(server: Server, thread: threading.Thread) -> None:
    server.stop()
    thread.join()
    server.close()


def truth(tmp_path: Path, rows: int) -> list[TruthRow]:
    """The truth once it has as many rows."""
    path = tmp_path / "truth"
    deadline = time.monotonic() + 10
    while len(found := read_truth(path)) < rows and time.monotonic() < deadline:
        time.sleep(0.01)
    return found


def call(server: Server, path: str, body: Any = None, **headers: str) -> http.client.HTTPResponse:
    """A GET, or a POST of `body`; the response is read to its end."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)
    data = None if body is None else json.dumps(body)
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    connection.request("GET" if body is None else "POST", path, data, named)
    answer = connection.getresponse()
    answer.content = answer.read()  # type: ignore[attr-defined]  # kept with the answer for the test to look at
    connection.close()
    return answer


def content(answer: http.client.HTTPResponse) -> bytes:
    data: bytes = answer.content  # type: ignore[attr-defined]
    return data


def chat(**more: Any) -> dict[str, Any]:
    message = {"role": "user", "content": "hello"}
    return {"model": "sim", "messages": [message], "stream": True, "ignore_eos": True, **more}


CHAT = "/v1/chat/completions"


@pytest.mark.parametrize("null", [False, True])
def test_a_stream_brings_every_token_and_the_truth_tells_it(start: Start, tmp_path: Path, null: bool) -> None:
    server = start(null=null)
    before_ns = time.monotonic_ns()
    answer = call(server, CHAT, chat(max_completion_tokens=5), X_Request_ID="mine")
    after_ns = time.monotonic_ns()
    assert answer.getheader("Content-Type") == "text/event-stream; charset=utf-8"
    assert content(answer).count(b'"content":" ') == 5
    assert content(answer).endswith(b"data: [DONE]\n\n")
    (row,) = truth(tmp_path, 1)
    assert (row.request_id, row.prompt_tokens, row.tokens, row.end) == ("mine", 5, 5, "length")
    assert row.first_sent_ns is not None and row.last_sent_ns is not None
    moments = [before_ns, row.read_ns, row.first_sent_ns, row.last_sent_ns, after_ns]
    assert moments == sorted(moments)
    assert row.received_ns <= row.read_ns
    assert null or row.last_sent_ns - row.read_ns >= 5_000_000  # five steps of 1 ms


def test_an_answer_without_a_stream(start: Start, tmp_path: Path) -> None:
    answer = call(start(), CHAT, chat(stream=False, max_tokens=5))
    assert json.loads(content(answer))["usage"]["completion_tokens"] == 5
    (row,) = truth(tmp_path, 1)
    assert row.first_sent_ns == row.last_sent_ns
    assert (row.tokens, row.fault) == (5, None)


@pytest.mark.parametrize("stream", [False, True])
def test_the_truth_counts_every_byte(start: Start, tmp_path: Path, stream: bool) -> None:
    body = json.dumps(chat(stream=stream, max_tokens=50)).encode()
    close = b"Connection: close\r\n"
    with socket.create_connection(("127.0.0.1", start().port), timeout=10) as sock:
        sock.sendall(
            b"POST %b HTTP/1.1\r\n%bContent-Length: %d\r\n\r\n%b" % (CHAT.encode(), close, len(body), body)
        )
        found = b"".join(iter(lambda: sock.recv(1 << 20), b""))
    [row] = truth(tmp_path, 1)
    assert (row.bytes_sent, row.tokens) == (len(found), 50)


def test_what_it_is_asked_to_do_is_in_the_truth(start: Start, tmp_path: Path) -> None:
    server = start()
    assert content(call(server, "/start_profile", {})) == b"{}"
    assert content(call(server, CHAT, chat(max_tokens=1))) != b"{}"
    assert call(server, "/stop_profile").status == 405
    hook, request = truth(tmp_path, 2)
    assert (hook.hook, hook.end, hook.tokens) == ("/start_profile", "done", 0)
    assert (request.hook, request.tokens) == (None, 1)
    assert hook.received_ns < request.received_ns


def test_the_small_paths(start: Start) -> None:
    server = start()
    assert json.loads(content(call(server, "/v1/models")))["data"][0]["id"] == "sim"
    assert content(call(server, "/health")) == b"{}"
    version = json.loads(content(call(server, "/version")))["version"]
    assert call(server, "/health").getheader("Server") == f"loadstone-sim/{version}"


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("/nothing", {}, 404),
        (CHAT, None, 405),
        ("/v1/models", {}, 405),
        (CHAT, {}, 400),
        (CHAT, chat(model="x"), 404),
    ],
)
def test_refusals_have_a_status_and_a_message(start: Start, path: str, body: Any, status: int) -> None:
    answer = call(start(), path, body)
    assert answer.status == status
    assert json.loads(content(answer))["error"]["message"]


def test_a_key_is_asked_for_when_there_is_one(start: Start) -> None:
    server = start(api_key="secret")
    assert call(server, "/v1/models").status == 401
    assert call(server, "/v1/models", Authorization="Bearer wrong").status == 401
    assert call(server, "/v1/models", Authorization="Bearer secret").status == 200
    assert call(server, "/health").status == 200


def test_a_connection_is_kept_and_its_requests_answered_in_order(start: Start) -> None:
    server = start()
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)
    for tokens in (3, 1, 2):
        connection.request("POST", CHAT, json.dumps(chat(max_tokens=tokens)))
        assert connection.getresponse().read().count(b'"content":" ') == tokens
    connection.close()


@pytest.mark.parametrize("null", [False, True])
def test_pipelined_requests_are_answered_one_after_the_other(start: Start, null: bool) -> None:
    server = start(null=null)
    body = json.dumps(chat(stream=False, max_tokens=1)).encode()
    post = b"POST %b HTTP/1.1\r\nContent-Length: %d\r\n\r\n%b" % (CHAT.encode(), len(body), body)
    last = b"GET /health HTTP/1.1\r\nConnection: close\r\n\r\n"
    with socket.create_connection(("127.0.0.1", server.port), timeout=10) as sock:
        sock.sendall(post * (2000 if null else 3) + last)
        found = b"".join(iter(lambda: sock.recv(1 << 20), b""))
    assert found.count(b'"finish_reason":"length"') == (2000 if null else 3)
    assert found.endswith(b"\r\n\r\n{}")


def test_what_is_not_http_is_refused_and_closed(start: Start) -> None:
    with socket.create_connection(("127.0.0.1", start().port), timeout=10) as sock:
        sock.sendall(b"\x16\x03\x01\x02\x00")
        found = b"".join(iter(lambda: sock.recv(1 << 20), b""))
    assert found.startswith(b"HTTP/1.1 400 Bad Request\r\n")


def test_a_client_that_reads_slowly_gets_everything(start: Start) -> None:
    server = start(null=True)
    with socket.socket() as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        sock.settimeout(10)
        sock.connect(("127.0.0.1", server.port))
        body = json.dumps(chat(max_tokens=40_000)).encode()
        close = b"Connection: close\r\n"
        sock.sendall(
            b"POST %b HTTP/1.1\r\n%bContent-Length: %d\r\n\r\n%b" % (CHAT.encode(), close, len(body), body)
        )
        assert call(server, "/health").status == 200
        found = b"".join(iter(lambda: sock.recv(1 << 20), b""))
    assert found.count(b'"content":" ') == 40_000
    assert found.endswith(b"0\r\n\r\n")


def test_a_client_that_leaves_makes_room_and_is_on_record(start: Start, tmp_path: Path) -> None:
    server = start(max_num_seqs=1)
    body = json.dumps(chat(max_tokens=1_000_000)).encode()
    with socket.create_connection(("127.0.0.1", server.port), timeout=10) as sock:
        sock.sendall(b"POST %b HTTP/1.1\r\nContent-Length: %d\r\n\r\n%b" % (CHAT.encode(), len(body), body))
        sock.recv(100)
    assert content(call(server, CHAT, chat(max_tokens=2))).count(b'"content":" ') == 2
    left, served = truth(tmp_path, 2)
    assert (left.end, served.end) == ("closed", "length")
    assert 1 <= left.tokens < 1_000_000


def test_many_clients_share_the_steps(start: Start, tmp_path: Path) -> None:
    server = start(step_ms=5.0)
    clients = [threading.Thread(target=call, args=(server, CHAT, chat(max_tokens=10))) for _ in range(20)]
    for client in clients:
        client.start()
    for client in clients:
        client.join()
    rows = truth(tmp_path, 20)
    assert [row.tokens for row in rows] == [10] * 20


def test_an_address_in_use_is_one_sentence(start: Start) -> None:
    server = start()
    with pytest.raises(
        UsageError, match=f"cannot listen on 127.0.0.1 port {server.port}: .*; choose another --port"
    ):
        Server(SimOptions(port=server.port))


def test_a_truth_file_that_cannot_be_written_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"truth = .*/no/file: No such file or directory; name a file"):
        Server(SimOptions(truth=str(tmp_path / "no" / "file")))


def child() -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "loadstone.sim.server"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


@pytest.mark.parametrize("how", ["stdin closes", "SIGTERM"])
def test_as_a_child_it_says_where_it_is_and_ends_when_told(how: str) -> None:
    with child() as process:
        assert process.stdin and process.stdout
        process.stdin.write('{"model":"m"}\n')
        process.stdin.flush()
        said = json.loads(process.stdout.readline())
        assert said["pid"] == process.pid
        with socket.create_connection(("127.0.0.1", said["port"]), timeout=10):
            pass
        if how == "SIGTERM":
            process.terminate()
        else:
            process.stdin.close()
        assert process.wait(10) == 0


def test_as_a_child_it_refuses_wrong_options_in_one_sentence() -> None:
    with child() as process:
        _, said = process.communicate('{"step_ms":"x"}\n', timeout=10)
        assert process.returncode == 2
        assert said == "options: Expected `float`, got `str` - at `$.step_ms`\n"
