"""The server over real sockets: requests one behind the other, those that meet a defect, and what HTTP asks of it beside."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from loadstone.sim.api.answer import Answer
from loadstone.sim.api.chat import ChatAnswer
from loadstone.sim.api.embeddings import EmbeddingAnswer
from loadstone.sim.deployment import Deployment
from loadstone.sim.faults.steps import Step
from loadstone.sim.faulty import FaultyServer
from loadstone.sim.loop import FLUSH_BYTES, LONGEST_REST_S, MOST_AT_ONCE, Connection, Server
from loadstone.sim.options import SimOptions
from loadstone.sim.play import Play
from loadstone.sim.routes import ROUTES
from loadstone.sim.truth import read_truth

CHAT, COMPLETIONS = "/v1/chat/completions", "/v1/completions"
HELLO = {"messages": [{"role": "user", "content": "hello"}], "max_tokens": 2, "ignore_eos": True}


@contextmanager
def serving(kind: type[Server] = Server, **options: Any) -> Iterator[Server]:
    """A server with steps of a millisecond."""
    server = kind(SimOptions(**{"step_ms": 1.0, **options}))
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        yield server
    finally:
        server.stop()
        thread.join()
        server.close()


def post(path: str, body: Any, more: bytes = b"") -> bytes:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    head = b"POST %b HTTP/1.1\r\n%bContent-Length: %d\r\n\r\n"
    return head % (path.encode(), more, len(data)) + data


LAST = b"GET /health HTTP/1.1\r\nConnection: close\r\n\r\n"


def told(server: Server, data: bytes) -> bytes:
    """All that comes back for `data`, up to the close."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=10) as sock:
        sock.sendall(data)
        return b"".join(iter(lambda: sock.recv(1 << 16), b""))


# ---- one behind the other ----


@pytest.mark.parametrize("options", [{}, {"data_parallel_size": 2}, {"prefill_replicas": 1}, {"null": True}])
def test_requests_sent_at_once_are_answered_one_behind_the_other(options: dict[str, Any]) -> None:
    with serving(**options) as server:
        found = told(server, post(CHAT, HELLO) * 5 + post(CHAT, {**HELLO, "stream": True}) * 5 + LAST)
    assert (found.count(b"HTTP/1.1 200 OK"), found.count(b"[DONE]")) == (11, 5)
    assert found.endswith(b"\r\n\r\n{}")


def test_so_are_those_that_wait_behind_a_fault() -> None:
    with serving(FaultyServer, fault=("usage-null:0.5",)) as server:
        found = told(server, post(CHAT, {**HELLO, "stream": True}) * 6 + LAST)
    assert (found.count(b"HTTP/1.1 200 OK"), found.count(b"[DONE]")) == (7, 6)


# ---- defects ----


def broken(*_: Any) -> Any:
    raise ZeroDivisionError("a route that raises\x1b[2J")


def test_a_route_that_raises_costs_its_request_alone(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(ROUTES, "/broken", ("POST", broken))
    with serving() as server:
        for _ in range(2):
            head, _, body = told(server, post("/broken", {})).partition(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 500 Internal Server Error\r\n")
            error = json.loads(body)["error"]
            assert (error["type"], error["code"]) == ("InternalServerError", 500)
            assert error["message"].startswith("ZeroDivisionError: a route that raises")
            assert error["message"].endswith("This is a defect of loadstone; please report it.")
        assert told(server, LAST).startswith(b"HTTP/1.1 200 OK")
    (line,) = capfd.readouterr().err.splitlines()
    assert line.startswith(
        "loadstone: POST /broken: ZeroDivisionError: a route that raises\\x1b[2J (test_sim_requests.py:"
    )
    assert line.endswith("It is answered with 500, and told here once.")


def test_an_answer_that_cannot_be_spelt_costs_its_request_alone(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(ChatAnswer, "whole", broken)
    monkeypatch.setattr(Answer, "closing", broken)
    with serving() as server:
        assert told(server, post(CHAT, HELLO)).startswith(b"HTTP/1.1 500 ")
        found = told(server, post(COMPLETIONS, {"prompt": "a", "max_tokens": 3}) + LAST)
        assert found.count(b"HTTP/1.1 200 OK") == 2
        page = told(server, LAST.replace(b"health", b"metrics"))
    assert b'vllm:num_requests_running{engine="0",model_name="sim"} 0.0' in page
    assert len(capfd.readouterr().err.splitlines()) == 1


def test_a_stream_that_cannot_go_on_ends_with_its_connection(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(ChatAnswer, "closing", broken)
    with serving() as server:
        found = told(server, post(CHAT, {**HELLO, "stream": True}))
        assert (found.count(b'"content":" '), found.count(b"[DONE]"), found.count(b"HTTP/1.1 ")) == (1, 0, 1)
        assert told(server, post(CHAT, HELLO) + LAST).count(b"HTTP/1.1 200 OK") == 2
    assert len(capfd.readouterr().err.splitlines()) == 1


def test_a_fault_that_raises_costs_its_request_alone(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(FaultyServer, "_step", broken)
    with serving(FaultyServer, fault=("usage-null",)) as server:
        assert told(server, post(CHAT, {**HELLO, "stream": True})).startswith(b"HTTP/1.1 500 ")
        assert told(server, LAST).startswith(b"HTTP/1.1 200 OK")
    assert capfd.readouterr().err.startswith("loadstone: the fault usage-null: ZeroDivisionError: ")


def test_a_fault_that_raises_while_it_goes_on_costs_its_request_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    step = FaultyServer._step

    def later(self: FaultyServer, connection: Connection, play: Play, one: Step | None) -> bool:
        return broken() if play.truth.bytes_sent else step(self, connection, play, one)

    monkeypatch.setattr(FaultyServer, "_step", later)
    with serving(FaultyServer, fault=("usage-null",)) as server:
        found = told(server, post(CHAT, {**HELLO, "stream": True}))
        assert found.startswith(b"HTTP/1.1 200 OK")
        assert found.count(b"HTTP/1.1 ") == 1
        assert told(server, LAST).startswith(b"HTTP/1.1 200 OK")


def test_no_step_is_waited_for_longer_than_the_kernel_can(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Deployment, "next_ns", 1 << 200)
    server = Server(SimOptions())
    assert server._patience_s() == LONGEST_REST_S
    server.close()


# ---- answers that take long to spell ----


@pytest.mark.parametrize("null", [False, True])
def test_others_are_served_while_many_vectors_are_spelt(null: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    spelling, served = threading.Event(), threading.Event()

    def watched(self: EmbeddingAnswer) -> Iterator[bytes]:
        spelling.set()
        for _ in range(20_000):  # each for less than a millisecond
            if served.wait(0.0005):
                yield b"{}"
                return
            yield b""
        yield b"nobody was served"

    monkeypatch.setattr(EmbeddingAnswer, "slices", watched)
    with (
        serving(null=null) as server,
        socket.create_connection(("127.0.0.1", server.port), timeout=20) as sock,
    ):
        sock.sendall(post("/v1/embeddings", {"input": ["a", "b"]}) * 2 + LAST)
        assert spelling.wait(10)
        assert told(server, post(CHAT, HELLO) + LAST).count(b"HTTP/1.1 200 OK") == 2
        served.set()
        found = b"".join(iter(lambda: sock.recv(1 << 16), b""))
    assert [part[:2] for part in found.split(b"\r\n\r\n")[1:]] == [b"{}"] * 3


class Slow:
    """A socket that takes a thousand bytes at a time, and notes what it was given."""

    def __init__(self) -> None:
        self.given: list[int] = []

    def send(self, data: bytes) -> int:
        self.given.append(len(data))
        return 1000


def test_an_answer_without_an_engine_has_a_bound() -> None:
    with serving(null=True) as server:
        for tokens, n, status in ((MOST_AT_ONCE, 1, b"200"), (MOST_AT_ONCE // 2 + 1, 2, b"400")):
            found = told(server, post(CHAT, {**HELLO, "max_tokens": tokens, "n": n}) + LAST)
            assert found.startswith(b"HTTP/1.1 " + status)
    assert b"262146 tokens at once are more than 262144; ask for fewer, or leave null out" in found


def test_of_what_waits_only_a_piece_is_copied_at_a_time() -> None:
    server = Server(SimOptions())
    with socket.socket() as sock:
        connection = Connection(sock)
        connection.out += bytes(FLUSH_BYTES + 2500)
        slow = Slow()
        connection.sock = slow  # type: ignore[assignment]
        for _ in range(4):
            server._flush(connection)
        assert slow.given == [FLUSH_BYTES, FLUSH_BYTES, FLUSH_BYTES, FLUSH_BYTES - 500]
        assert len(connection.out) == FLUSH_BYTES - 1500
    server.close()


def test_a_client_may_leave_before_its_answer_is_spelt(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    spelling, left = threading.Event(), threading.Event()

    def watched(self: EmbeddingAnswer) -> Iterator[bytes]:
        while not left.is_set():
            spelling.set()
            yield b""

    monkeypatch.setattr(EmbeddingAnswer, "slices", watched)
    with serving(truth=str(tmp_path / "truth")) as server:
        with socket.create_connection(("127.0.0.1", server.port), timeout=10) as sock:
            sock.sendall(post("/v1/embeddings", {"input": ["a", "b"]}))
            assert spelling.wait(10)
        deadline = time.monotonic() + 10
        while server._spelling and time.monotonic() < deadline:
            time.sleep(0.001)
        left.set()
        assert told(server, LAST).startswith(b"HTTP/1.1 200 OK")
    (row,) = read_truth(tmp_path / "truth")
    assert (row.end, row.bytes_sent) == ("closed", 0)


def test_an_answer_without_tokens_that_cannot_be_spelt_costs_its_request_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(EmbeddingAnswer, "slices", broken)
    with serving() as server:
        assert told(server, post("/v1/embeddings", {"input": "a"})).startswith(b"HTTP/1.1 500 ")
        assert told(server, LAST).startswith(b"HTTP/1.1 200 OK")


# ---- what HTTP asks for ----


def test_what_answers_head_has_no_body() -> None:
    with serving() as server:
        found = told(server, b"HEAD /health HTTP/1.1\r\n\r\n" + LAST)
    refusal, answer, body = found.split(b"\r\n\r\n")
    assert refusal.startswith(b"HTTP/1.1 405 ")
    assert answer.startswith(b"HTTP/1.1 200 OK\r\n")
    assert body == b"{}"


def test_a_client_that_waits_to_be_told_to_go_on_is_told() -> None:
    request = post(CHAT, HELLO, b"Expect: 100-Continue\r\nConnection: close\r\n")
    head, _, body = request.partition(b"\r\n\r\n")
    with serving() as server, socket.create_connection(("127.0.0.1", server.port), timeout=10) as sock:
        sock.sendall(head + b"\r\n\r\n")
        assert sock.recv(100) == b"HTTP/1.1 100 Continue\r\n\r\n"
        sock.sendall(body)
        assert sock.recv(100).startswith(b"HTTP/1.1 200 OK\r\n")


def test_it_is_told_behind_the_answer_under_way_and_not_in_it() -> None:
    first = post(CHAT, {**HELLO, "max_tokens": 20, "stream": True})
    head, _, body = post(CHAT, HELLO, b"Expect: 100-continue\r\nConnection: close\r\n").partition(b"\r\n\r\n")
    with serving() as server, socket.create_connection(("127.0.0.1", server.port), timeout=10) as sock:
        sock.sendall(first + head + b"\r\n\r\n")
        found = b""
        while b"100 Continue" not in found:
            found += sock.recv(1 << 16)
        assert found.endswith(b"0\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n")
        sock.sendall(body)
        assert sock.recv(100).startswith(b"HTTP/1.1 200 OK\r\n")


def test_a_body_that_is_there_already_needs_no_word() -> None:
    with serving() as server:
        found = told(server, post(CHAT, HELLO, b"Expect: 100-continue\r\n") + LAST)
    assert (found.count(b"100 Continue"), found.count(b"HTTP/1.1 200 OK")) == (0, 2)


def test_a_body_that_is_announced_as_too_long_is_not_waited_for() -> None:
    head = b"POST %b HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 67108865\r\n\r\n" % CHAT.encode()
    with serving() as server:
        assert told(server, head).startswith(b"HTTP/1.1 413 ")
