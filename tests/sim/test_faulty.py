"""The server that plays faults: whom they hit, what becomes of connections and of the server, what the truth tells."""

from __future__ import annotations

import http.client
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from loadstone.errors import UsageError
from loadstone.sim.faults import FAULTS, Fault, Script
from loadstone.sim.faults.steps import Send, Steps
from loadstone.sim.faulty import FaultyServer
from loadstone.sim.options import SimOptions
from loadstone.sim.truth import TruthRow, read_truth

CHAT = "/v1/chat/completions"
PATIENCE_S = 20


class Served:
    """A server in a thread, and the connections to it; `close` ends them all."""

    def __init__(self, options: SimOptions) -> None:
        self.server = FaultyServer(options)
        self.port = self.server.port
        self._connections: list[http.client.HTTPConnection] = []
        self._thread = threading.Thread(target=self.server.run)
        self._thread.start()

    def connect(self) -> http.client.HTTPConnection:
        self._connections.append(http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_S))
        return self._connections[-1]

    def close(self) -> None:
        for connection in self._connections:
            connection.close()
        self.server.stop()
        self._thread.join()
        self.server.close()


Start = Callable[..., Served]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts servers that write their truth to `tmp_path / "truth"`; stops them at the end."""
    running: list[Served] = []

    def begin(*faults: str, **more: Any) -> Served:
        options = {"step_ms": 1.0, "truth": str(tmp_path / "truth"), **more}
        running.append(Served(SimOptions(fault=faults, **options)))
        return running[-1]

    yield begin
    for served in running:
        served.close()


def until(found: Callable[[], Any]) -> Any:
    deadline = time.monotonic() + PATIENCE_S
    while not (what := found()) and time.monotonic() < deadline:
        time.sleep(0.01)
    return what


def truth(tmp_path: Path, rows: int) -> list[TruthRow]:
    """The truth, once it has as many rows."""
    return until(lambda: found if len(found := read_truth(tmp_path / "truth")) >= rows else None) or []


def ask(
    connection: http.client.HTTPConnection, path: str = CHAT, request_id: str | None = None, **more: Any
) -> tuple[int, bytes]:
    """Status and body of one answer."""
    call = {"model": "sim", "stream": True, "max_tokens": 8, "ignore_eos": True, **more}
    what = (
        {"prompt": "hello"}
        if path == "/v1/completions"
        else {"messages": [{"role": "user", "content": "hi"}]}
    )
    headers = {"X-Request-ID": request_id} if request_id else {}
    connection.request("POST", path, json.dumps({**call, **what}), headers)
    answer = connection.getresponse()
    return answer.status, answer.read()


def raw(server: Served, request_id: str = "r") -> socket.socket:
    """A connection on which one request for a stream was sent."""
    sock = socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE_S)
    body = json.dumps(
        {"model": "sim", "stream": True, "messages": [{"role": "user", "content": "hi"}]}
    ).encode()
    head = f"POST {CHAT} HTTP/1.1\r\nX-Request-ID: {request_id}\r\nContent-Length: {len(body)}\r\n\r\n"
    sock.sendall(head.encode() + body)
    return sock


def refused(server: Served) -> bool:
    try:
        server.connect().connect()
    except ConnectionRefusedError:
        return True
    return False


# ---- whom they hit ----


def test_the_preflight_is_answered_well_unless_it_is_said(start: Start) -> None:
    server = start("http-500")
    assert ask(server.connect(), request_id="preflight-1")[0] == 200
    assert ask(server.connect(), request_id="a")[0] == 500
    assert ask(start("http-500", fault_preflight=True).connect(), request_id="preflight-1")[0] == 500


def test_what_is_no_generation_is_answered_well(start: Start) -> None:
    connection = start("http-500").connect()
    for path in ("/v1/models", "/health"):
        connection.request("GET", path)
        answer = connection.getresponse()
        answer.read()
        assert answer.status == 200


def test_a_wrong_request_is_refused_as_ever(start: Start) -> None:
    assert ask(start("eof").connect(), model="other")[0] == 404


@pytest.mark.parametrize(
    ("fault", "path", "stream"), [("eof", CHAT, False), ("reasoning", "/v1/completions", True)]
)
def test_who_asks_for_less_than_a_fault_needs_is_answered_well(
    start: Start, tmp_path: Path, fault: str, path: str, stream: bool
) -> None:
    status, body = ask(start(fault).connect(), path, stream=stream)
    assert status == 200
    assert (
        body.endswith(b"data: [DONE]\n\n") if stream else json.loads(body)["usage"]["completion_tokens"] == 8
    )
    [row] = truth(tmp_path, 1)
    assert (row.fault, row.tokens, row.end) == (None, 8, "length")


@pytest.mark.parametrize("path", [CHAT, "/v1/completions"])
def test_completions_get_faults_too(start: Start, path: str) -> None:
    status, body = ask(start("cr").connect(), path)
    assert (status, body.count(b"\r\r"), b"\n" in body) == (200, 8 if path == CHAT else 7, False)


def test_an_answer_that_is_not_streamed_is_cut_too(start: Start, tmp_path: Path) -> None:
    with pytest.raises(http.client.IncompleteRead):
        ask(start("close").connect(), stream=False)
    [row] = truth(tmp_path, 1)
    assert (row.fault, row.tokens, row.end) == ("close", 0, "played")


def test_a_share_of_the_requests_gets_the_fault_and_the_same_ones_again(start: Start, tmp_path: Path) -> None:
    connection = start("http-500:0.5").connect()
    first = [ask(connection, request_id=f"r{number}")[0] for number in range(12)]
    again = [ask(connection, request_id=f"r{number}")[0] for number in range(12)]
    assert first == again
    assert set(first) == {200, 500}
    rows = truth(tmp_path, 24)
    assert [500 if row.fault else 200 for row in rows] == first + again


def test_requests_without_an_id_are_told_apart_by_their_number(start: Start) -> None:
    connection = start("http-500:0.5").connect()
    assert {ask(connection)[0] for _ in range(12)} == {200, 500}


@pytest.mark.parametrize(("asked", "sent"), [(2, 2), (5, 5), (100, 5)])
def test_a_fault_brings_five_tokens_unless_fewer_are_asked_for(
    start: Start, tmp_path: Path, asked: int, sent: int
) -> None:
    _, body = ask(start("no-space").connect(), max_tokens=asked)
    assert body.count(b'"content":" ') == sent
    assert truth(tmp_path, 1)[0].tokens == sent


def test_a_fault_that_there_is_not_is_refused_before_anything_listens() -> None:
    with pytest.raises(UsageError, match="there is no such fault"):
        FaultyServer(SimOptions(fault=("nothing",)))


# ---- connections ----


@pytest.mark.parametrize(
    ("fault", "error"),
    [("closes-reused", http.client.RemoteDisconnected), ("resets-reused", ConnectionResetError)],
)
def test_a_kept_connection_ends_when_the_next_request_comes(
    start: Start, tmp_path: Path, fault: str, error: type[Exception]
) -> None:
    connection = start(fault).connect()
    assert ask(connection, request_id="first")[0] == 200
    with pytest.raises(error):
        ask(connection, request_id="second")
    connection.close()
    assert ask(connection, request_id="second")[0] == 200
    rows = truth(tmp_path, 3)
    assert [(row.request_id, row.tokens) for row in rows] == [("first", 5), ("second", 0), ("second", 5)]


@pytest.mark.parametrize("fault", ["redirect-307", "redirect-308"])
def test_after_the_redirect_the_answer_is_good(start: Start, fault: str) -> None:
    connection = start(fault).connect()
    assert ask(connection)[0] in (307, 308)
    status, body = ask(connection, f"{CHAT}?redirected=1")
    assert (status, body.count(b'"content":" ')) == (200, 5)


def test_a_loop_of_redirects_has_no_end(start: Start) -> None:
    connection = start("redirect-loop").connect()
    assert {ask(connection, path)[0] for path in (CHAT, f"{CHAT}?redirected=1")} == {307}


def test_a_client_that_leaves_ends_the_fault(start: Start, tmp_path: Path) -> None:
    sock = raw(start("tokens-forever"))
    assert sock.recv(1)
    sock.close()
    [row] = truth(tmp_path, 1)
    assert (row.fault, row.end) == ("tokens-forever", "closed")


def test_ignores_close_goes_on_when_the_client_has_closed_its_side(start: Start, tmp_path: Path) -> None:
    with raw(start("ignores-close")) as sock:
        sock.shutdown(socket.SHUT_WR)
        found = b""
        while found.count(b'" on"') < 5:
            found += sock.recv(1 << 16)
    [row] = truth(tmp_path, 1)
    assert row.end == "closed"
    assert row.tokens >= 8


def test_a_slow_reader_gets_every_byte_and_the_server_serves_the_others(start: Start, tmp_path: Path) -> None:
    server = start("tiny-events")
    with raw(server, "slow") as sock:
        found = sock.recv(1000)
        assert ask(server.connect(), request_id="preflight-2")[0] == 200
        while not found.endswith(b"0\r\n\r\n"):
            found += sock.recv(1 << 16)
    assert found.count(b'"content":"a"') == 100_000
    row = next(row for row in truth(tmp_path, 2) if row.request_id == "slow")
    assert (row.bytes_sent, row.tokens, row.end) == (len(found), 100_000, "played")


def test_an_endless_answer_does_not_stop_the_others(start: Start) -> None:
    server = start("endless-body")
    with raw(server, "endless") as sock:
        drain = threading.Thread(target=lambda: [sock.recv(1 << 20) for _ in range(200)])
        drain.start()
        assert ask(server.connect(), request_id="preflight-3")[0] == 200
        drain.join()


def test_a_fault_of_nothing_but_sends_does_not_stop_the_others(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    answered = threading.Event()

    def sends(script: Script) -> Steps:
        while not answered.is_set():
            yield Send(b"")  # the kernel takes it whatever the client reads

    monkeypatch.setitem(FAULTS, "sends", Fault("sends", "", "ok", "", False, sends))
    server = start("sends")
    with raw(server):
        try:
            assert ask(server.connect(), request_id="preflight-4")[0] == 200
        finally:
            answered.set()


def test_pipelined_requests_get_their_faults_in_order(start: Start) -> None:
    server = start("http-500")
    body = json.dumps({"model": "sim", "messages": [{"role": "user", "content": "hi"}]}).encode()
    post = b"POST %b HTTP/1.1\r\nContent-Length: %d\r\n\r\n%b" % (CHAT.encode(), len(body), body)
    with socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE_S) as sock:
        sock.sendall(post * 3 + b"GET /health HTTP/1.1\r\nConnection: close\r\n\r\n")
        found = b"".join(iter(lambda: sock.recv(1 << 20), b""))
    assert found.count(b"HTTP/1.1 500 ") == 3
    assert found.endswith(b"\r\n\r\n{}")


# ---- the whole server ----


def test_a_server_that_dies_refuses_everybody(start: Start, tmp_path: Path) -> None:
    server = start("dies-after:3")
    connection, other = server.connect(), server.connect()
    other.connect()
    assert [ask(connection, request_id=f"r{number}")[0] for number in range(3)] == [200] * 3
    with pytest.raises(http.client.RemoteDisconnected):
        ask(connection, request_id="r3")
    assert other.sock.recv(1) == b""
    assert refused(server)
    rows = truth(tmp_path, 4)
    assert [row.fault for row in rows] == [None] * 3 + ["dies-after"]


def test_a_server_that_dies_cuts_what_is_under_way(start: Start, tmp_path: Path) -> None:
    server = start("dies-after:1")
    with raw(server, "under-way") as sock, raw(server, "last"):
        found = b"".join(iter(lambda: sock.recv(1 << 16), b""))
    assert not found.endswith(b"0\r\n\r\n")
    under_way = next(row for row in truth(tmp_path, 2) if row.request_id == "under-way")
    assert (under_way.end, under_way.fault) == ("closed", None)


def test_a_server_that_restarts_is_back_at_the_same_port(start: Start) -> None:
    server = start("restarts:0")
    with pytest.raises(http.client.RemoteDisconnected):
        ask(server.connect())
    assert refused(server)
    assert until(lambda: not refused(server))
    assert ask(server.connect())[0] == 200


def test_preflights_do_not_count(start: Start) -> None:
    server = start("dies-after:0")
    assert ask(server.connect(), request_id="preflight-4")[0] == 200
    with pytest.raises(http.client.RemoteDisconnected):
        ask(server.connect())


def test_answers_that_are_faults_are_on_the_page_of_metrics(start: Start) -> None:
    served = start("crlf")
    connection = served.connect()

    def page() -> dict[str, float]:
        connection.request("GET", "/metrics")
        lines = connection.getresponse().read().decode().splitlines()
        names = [line.rpartition(" ") for line in lines if line.startswith("vllm:")]
        return {name: float(value) for name, _, value in names}

    before = page()
    for _ in range(3):
        assert ask(connection)[0] == 200
    after = page()
    grown = {
        name.partition("{")[0]: after[name] - before[name] for name in after if after[name] != before[name]
    }
    assert grown == {
        "vllm:generation_tokens_total": 15, "vllm:prompt_tokens_total": 15, "vllm:request_success_total": 3,
    }  # fmt: skip
    assert after['vllm:num_requests_running{engine="0",model_name="sim"}'] == 0
