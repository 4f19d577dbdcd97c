"""The server over real sockets: what it says, and that its ground truth is what happened."""

from __future__ import annotations

import http.client
import itertools
import json
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from loadstone.errors import UsageError
from loadstone.sim.loop import Server
from loadstone.sim.options import SimOptions
from loadstone.sim.routes import METRICS, ROUTES
from loadstone.sim.step_log import read_steps
from loadstone.sim.tallies import Served
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


def metrics(server: Server, engine: int = 0) -> dict[str, float]:
    """The page of /metrics: samples of one engine by name, labels of their own behind it."""
    text = content(call(server, "/metrics")).decode()
    found = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            own = {
                name: value for name, value in sample.labels.items() if name not in ("model_name", "engine")
            }
            if sample.labels.get("engine", "0") == str(engine):
                found[" ".join([sample.name.removeprefix("vllm:"), *own.values()])] = sample.value
    return found


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


def test_the_truth_dates_every_token(start: Start, tmp_path: Path) -> None:
    call(start(), CHAT, chat(max_tokens=5))
    (row,) = truth(tmp_path, 1)
    assert row.sent_ns is not None and row.scheduled_ns is not None
    assert (len(row.sent_ns), row.sent_ns[0], row.sent_ns[-1]) == (5, row.first_sent_ns, row.last_sent_ns)
    assert row.sent_ns == sorted(row.sent_ns)
    assert row.received_ns <= row.scheduled_ns < row.sent_ns[0]
    assert (row.engine, row.cached_tokens, row.preemptions) == (0, 0, 0)


def test_tokens_of_an_answer_in_one_piece_have_no_dates_of_their_own(start: Start, tmp_path: Path) -> None:
    call(start(), CHAT, chat(stream=False, max_tokens=5))
    (row,) = truth(tmp_path, 1)
    assert (row.sent_ns, row.engine) == (None, 0)


def test_the_truth_names_the_engine(start: Start, tmp_path: Path) -> None:
    server = start(data_parallel_size=2)
    for _ in range(4):
        call(server, CHAT, chat(max_tokens=2))
    assert [row.engine for row in truth(tmp_path, 4)] == [0, 1, 0, 1]


def test_who_had_to_give_way_is_in_the_truth_and_on_the_page(start: Start, tmp_path: Path) -> None:
    server = start(num_gpu_blocks_override=4, block_size=16, step_ms=20.0)
    bodies = [chat(max_tokens=40, messages=[{"role": "user", "content": word}]) for word in ("one", "two")]
    clients = [threading.Thread(target=call, args=(server, CHAT, body)) for body in bodies]
    for client in clients:
        client.start()
    for client in clients:
        client.join()
    rows = truth(tmp_path, 2)
    assert [row.tokens for row in rows] == [40, 40]
    preemptions = sum(row.preemptions or 0 for row in rows)
    assert preemptions == metrics(server)["num_preemptions_total"] >= 1


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


def test_the_truth_counts_no_byte_that_the_kernel_did_not_take(start: Start, tmp_path: Path) -> None:
    asked = chat(stream=True, max_tokens=400, n=32, logprobs=True, top_logprobs=20)
    body = json.dumps(asked).encode()
    server = start(step_ms=5.0)  # the answer takes longer than to see that the kernel is full
    with socket.socket() as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        sock.settimeout(10)
        sock.connect(("127.0.0.1", server.port))
        sock.sendall(b"POST %b HTTP/1.1\r\nContent-Length: %d\r\n\r\n%b" % (CHAT.encode(), len(body), body))
        deadline = time.monotonic() + 10
        while not any(one.out for one in list(server._connections.values())) and time.monotonic() < deadline:
            time.sleep(0.001)
        sock.shutdown(socket.SHUT_WR)  # it leaves, and reads what is on its way
        found = b"".join(iter(lambda: sock.recv(1 << 20), b""))
    [row] = truth(tmp_path, 1)
    assert (row.bytes_sent, row.end) == (len(found), "closed")


def test_what_it_is_asked_to_do_is_in_the_truth(start: Start, tmp_path: Path) -> None:
    server = start()
    assert content(call(server, "/start_profile", {})) == b"{}"
    assert content(call(server, CHAT, chat(max_tokens=1))) != b"{}"
    assert call(server, "/stop_profile").status == 405
    hook, request = truth(tmp_path, 2)
    assert (hook.hook, hook.end, hook.tokens) == ("/start_profile", "done", 0)
    assert (request.hook, request.tokens) == (None, 1)
    assert hook.received_ns < request.received_ns


def test_the_metrics_of_an_idle_server(start: Start) -> None:
    answer = call(start(block_size=32, num_gpu_blocks_override=100), "/metrics")
    assert answer.getheader("Content-Type") == "text/plain; version=0.0.4; charset=utf-8"
    page = content(answer).decode()
    for line in (
        'vllm:num_requests_running{engine="0",model_name="sim"} 0.0',
        'vllm:request_success_total{engine="0",finished_reason="length",model_name="sim"} 0.0',
        'vllm:time_to_first_token_seconds_bucket{engine="0",le="2560.0",model_name="sim"} 0.0',
        'vllm:request_generation_tokens_bucket{engine="0",le="2000.0",model_name="sim"} 0.0',
        'vllm:cache_config_info{block_size="32",cache_dtype="auto",enable_prefix_caching="True",engine="0",'
        'gpu_memory_utilization="0.92",kv_cache_size_tokens="3200",num_gpu_blocks="100"} 1.0',
    ):
        assert line in page.splitlines()
    assert 'vllm:request_generation_tokens_bucket{engine="0",le="5000.0"' not in page


def test_the_metrics_are_what_the_truth_says(start: Start, tmp_path: Path) -> None:
    server = start()
    for tokens in (1, 2, 7):
        call(server, CHAT, chat(max_tokens=tokens))
    found, rows = metrics(server), truth(tmp_path, 3)
    assert (found["prompt_tokens_total"], found["generation_tokens_total"]) == (15, 10)
    assert (found["request_success_total length"], found["request_success_total stop"]) == (3, 0)
    assert found["request_generation_tokens_sum"] == 10
    assert [found[f"request_generation_tokens_bucket {le}"] for le in ("1.0", "2.0", "5.0", "10.0")] == [
        1,
        2,
        2,
        3,
    ]
    first_ns = sum((row.first_sent_ns or 0) - row.received_ns for row in rows)
    last_ns = sum((row.last_sent_ns or 0) - row.received_ns for row in rows)
    queue_ns = sum((row.scheduled_ns or 0) - row.received_ns for row in rows)
    assert found["time_to_first_token_seconds_sum"] == first_ns / 1e9
    assert found["e2e_request_latency_seconds_sum"] == last_ns / 1e9
    assert found["request_queue_time_seconds_sum"] == queue_ns / 1e9
    assert found["inter_token_latency_seconds_count"] == 7  # tokens after the first of each
    assert found["inter_token_latency_seconds_sum"] == found["request_decode_time_seconds_sum"]
    phases = found["request_prefill_time_seconds_sum"] + found["request_decode_time_seconds_sum"]
    assert found["request_inference_time_seconds_sum"] == pytest.approx(phases)
    assert (found["iteration_tokens_total_sum"], found["iteration_tokens_total_count"]) == (25, 10)


def test_the_metrics_tell_who_runs_and_who_waits_and_who_has_left(start: Start, tmp_path: Path) -> None:
    server = start(max_num_seqs=1, num_gpu_blocks_override=1000)
    body = json.dumps(chat(max_tokens=10_000)).encode()
    post = b"POST %b HTTP/1.1\r\nContent-Length: %d\r\n\r\n%b" % (CHAT.encode(), len(body), body)
    with (
        socket.create_connection(("127.0.0.1", server.port), timeout=10) as runs,
        socket.create_connection(("127.0.0.1", server.port), timeout=10) as waits,
    ):
        runs.sendall(post)
        runs.recv(100)
        waits.sendall(post)
        while (found := metrics(server))["num_requests_waiting"] == 0:
            pass
        assert (found["num_requests_running"], found["num_requests_waiting"]) == (1, 1)
        assert 0 < found["kv_cache_usage_perc"] < 1
    truth(tmp_path, 2)
    found = metrics(server)
    assert (found["num_requests_running"], found["num_requests_waiting"]) == (0, 0)
    assert (found["kv_cache_usage_perc"], found["request_success_total abort"]) == (0, 2)
    assert found["e2e_request_latency_seconds_count"] == 0


def test_a_client_that_is_gone_when_both_its_choices_end_costs_nobody_else(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = start(step_ms=5.0)
    client = socket.create_connection(("127.0.0.1", server.port), timeout=10)
    hand_out = server._hand_out

    def leave_at_the_end(served: list[Served], at_ns: int) -> None:
        if any(part.owner.out == 6 for one in served for part, _ in one.parts) and client.fileno() >= 0:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            client.close()  # with a reset, which every send from now on meets
        hand_out(served, at_ns)

    monkeypatch.setattr(server, "_hand_out", leave_at_the_end)
    body = json.dumps(chat(n=2, max_tokens=4, ignore_eos=True, stream=True)).encode()
    client.sendall(b"POST %b HTTP/1.1\r\nContent-Length: %d\r\n\r\n%b" % (CHAT.encode(), len(body), body))
    (row,) = truth(tmp_path, 1)
    assert (row.end, row.engine) == ("closed", 0)
    assert call(server, CHAT, chat(max_tokens=2)).status == 200
    found = metrics(server)
    assert (found["request_success_total length"], found["request_success_total abort"]) == (3, 0)
    assert found["generation_tokens_total"] == 8 + 2


def test_what_is_handed_on_waits_at_the_engine_that_will_answer(start: Start, tmp_path: Path) -> None:
    server = start(
        gpu="h100", hf_config_path="llama-3.1-8b", prefill_replicas=1, kv_transfer_gbps=0.001, step_ms=10.0
    )
    body = json.dumps(chat(max_tokens=2)).encode()
    with socket.create_connection(("127.0.0.1", server.port), timeout=10) as client:
        client.sendall(b"POST %b HTTP/1.1\r\nContent-Length: %d\r\n\r\n%b" % (CHAT.encode(), len(body), body))
        while metrics(server, 1)["iteration_tokens_total_count"] == 0:
            pass
        answers, prompts = metrics(server, 0), metrics(server, 1)
    assert (answers["num_requests_waiting"], answers["num_requests_running"]) == (1, 0)
    assert (prompts["num_requests_waiting"], prompts["num_requests_running"]) == (0, 0)
    assert prompts["kv_cache_usage_perc"] > answers["kv_cache_usage_perc"] == 0
    (row,) = truth(tmp_path, 1)
    assert (row.engine, row.end) == (0, "closed")
    assert [metrics(server, engine)["request_success_total abort"] for engine in (0, 1)] == [1, 0]


def test_where_prompts_are_taken_in_by_others_each_engine_counts_what_it_did(
    start: Start, tmp_path: Path
) -> None:
    server = start(prefill_replicas=1)
    call(server, CHAT, chat(max_tokens=3))
    answers, prompts = metrics(server, 0), metrics(server, 1)
    assert (answers["generation_tokens_total"], prompts["generation_tokens_total"]) == (3, 0)
    assert (answers["request_success_total length"], prompts["request_success_total length"]) == (1, 0)
    assert (prompts["iteration_tokens_total_count"], prompts["iteration_tokens_total_sum"]) == (1, 5)
    (row,) = truth(tmp_path, 1)
    assert (row.engine, row.tokens) == (0, 3)


def test_with_speculation_the_metrics_tell_what_was_accepted(start: Start, tmp_path: Path) -> None:
    server = start(num_speculative_tokens=3, acceptance_rates="1")
    call(server, CHAT, chat(max_tokens=9))  # the prompt's step brings one, two more steps four each
    found = metrics(server)
    assert (found["spec_decode_num_drafts_total"], found["spec_decode_num_draft_tokens_total"]) == (2, 6)
    assert found["spec_decode_num_accepted_tokens_total"] == 6
    assert [found[f"spec_decode_num_accepted_tokens_per_pos_total {at}"] for at in "012"] == [2, 2, 2]
    (row,) = truth(tmp_path, 1)
    assert row.sent_ns is not None
    assert (len(row.sent_ns), len(set(row.sent_ns))) == (9, 3)


def test_without_an_engine_there_are_counts_and_no_times(start: Start) -> None:
    server = start(null=True)
    call(server, CHAT, chat(max_tokens=4))
    found = metrics(server)
    assert (found["generation_tokens_total"], found["request_success_total length"]) == (4, 1)
    assert found["time_to_first_token_seconds_count"] == 0


def test_metrics_need_no_key_and_are_to_be_got(start: Start) -> None:
    server = start(api_key="secret")
    assert call(server, "/metrics").status == 200
    assert call(server, "/metrics", {}).status == 405


def shared(**more: Any) -> dict[str, Any]:
    """A request whose prompt has 44 tokens: two full blocks and a part of one."""
    return chat(messages=[{"role": "user", "content": "word " * 40}], max_tokens=2, **more)


def test_a_beginning_that_was_there_is_found_until_the_cache_is_emptied(start: Start, tmp_path: Path) -> None:
    server = start(block_size=16)
    for _ in range(2):
        call(server, CHAT, shared())
    found = metrics(server)
    assert (found["prefix_cache_queries_total"], found["prefix_cache_hits_total"]) == (88, 32)
    assert (found["prompt_tokens_total"], found["prompt_tokens_cached_total"]) == (88, 32)
    assert found["request_prefill_kv_computed_tokens_sum"] == 56
    assert call(server, "/reset_prefix_cache", {}).status == 200
    call(server, CHAT, shared())
    assert metrics(server)["prefix_cache_hits_total"] == 32
    assert [row.cached_tokens for row in truth(tmp_path, 4) if row.hook is None] == [0, 32, 0]


def test_the_cache_is_not_emptied_while_something_runs(start: Start, tmp_path: Path) -> None:
    server = start(block_size=16)
    call(server, CHAT, shared())
    body = json.dumps(chat(max_tokens=10_000)).encode()
    post = b"POST %b HTTP/1.1\r\nContent-Length: %d\r\n\r\n%b" % (CHAT.encode(), len(body), body)
    with socket.create_connection(("127.0.0.1", server.port), timeout=10) as runs:
        runs.sendall(post)
        runs.recv(100)
        call(server, "/reset_prefix_cache", {})
        call(server, CHAT, shared())
    assert metrics(server)["prefix_cache_hits_total"] == 32


def test_what_could_never_be_served_is_refused(start: Start, tmp_path: Path) -> None:
    server = start(max_model_len=10)
    answer = call(server, CHAT, chat(max_tokens=6))
    assert (answer.status, json.loads(content(answer))["error"]["type"]) == (400, "BadRequestError")
    assert call(server, CHAT, chat(max_tokens=5)).status == 200
    (row,) = truth(tmp_path, 1)
    assert row.tokens == 5


def test_the_steps_are_on_file_when_asked_for(start: Start, tmp_path: Path) -> None:
    server = Server(SimOptions(**FAST, steps=str(tmp_path / "steps")))
    thread = threading.Thread(target=server.run)
    thread.start()
    call(server, CHAT, chat(max_tokens=4))
    stop(server, thread)
    rows = read_steps(tmp_path / "steps")
    assert [row.sequences for row in rows] == [1, 1, 1, 1]
    assert all(row.due_ns <= row.begun_ns <= row.sent_ns for row in rows)
    dues = [row.due_ns for row in rows]
    assert all(later - before >= 1_000_000 for before, later in itertools.pairwise(dues))


def test_the_port_is_closed_while_it_starts_up(start: Start) -> None:
    server = start(startup_s=0.3)
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", server.port))
    while True:
        try:
            assert call(server, "/health").status == 200
        except ConnectionRefusedError:
            time.sleep(0.01)
        else:
            break


def test_while_it_starts_up_it_can_be_stopped() -> None:
    server = Server(SimOptions(startup_s=86_400))
    thread = threading.Thread(target=server.run)
    thread.start()
    stop(server, thread)


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


@pytest.mark.parametrize("path", [CHAT, "/v1/models", "/nowhere", "/v1/embeddings"])
def test_an_answer_bears_the_id_of_its_request_when_it_is_to(start: Start, path: str) -> None:
    body = {CHAT: chat(), "/v1/embeddings": {"input": "a"}}.get(path)
    plain, bearing = start(), start(enable_request_id_headers=True)
    assert call(bearing, path, body, **{"X-Request-ID": "a-7"}).getheader("X-Request-Id") == "a-7"
    assert call(bearing, path, body).getheader("X-Request-Id") is None
    assert call(plain, path, body, **{"X-Request-ID": "a-7"}).getheader("X-Request-Id") is None


def test_a_path_that_there_is_not_is_answered_with_those_that_there_are(start: Start) -> None:
    message = json.loads(content(call(start(), "/nowhere")))["error"]["message"]
    assert {*ROUTES, METRICS} == set(message.partition("there are: ")[2].split(", "))


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
    with pytest.raises(UsageError, match=r"steps = .*/no/file: No such file or directory; name a file"):
        Server(SimOptions(steps=str(tmp_path / "no" / "file")))


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


def test_a_model_that_does_not_fit_is_an_error_of_usage_with_the_numbers() -> None:
    with child() as process:
        _, said = process.communicate('{"gpu":"a100-80gb-sxm","model":"llama-3.1-70b"}\n', timeout=30)
        assert process.returncode == 2
        assert said.startswith(
            "Out of memory: on each a100-80gb-sxm the weights of llama-3.1-70b (bf16) take 131.4 GiB"
        )
