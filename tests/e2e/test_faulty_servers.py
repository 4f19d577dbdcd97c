"""Servers that fail: every request has one outcome, said in the server's words, and the run goes on."""

from __future__ import annotations

import pytest

STALL_S, FIRST_S = 0.6, 0.25
ROWS = 10
LOAD = f"--model m --streaming --isl 16 --osl 4 --request-count {ROWS} --seed 1"


def broken(call, wire):
    """Answers well, but for the rows that have a fault of their own."""
    if call.row not in FAULTS:
        wire.answer(call)
        return
    FAULTS[call.row][1](call, wire)


def server_error(call, wire):
    wire.refuse("500 Internal Server Error", "out of \x1b[31mmemory")


def reset(call, wire):
    wire.begin()
    wire.chunk(wire.delta(content="one"))
    wire.reset()


def truncated(call, wire):
    wire.begin()
    wire.chunk(wire.delta(content="one"))
    wire.chunk(b"")


def cut_off(call, wire):
    wire.begin()
    wire.chunk(wire.delta(content="one"))
    wire.close()


def in_band(call, wire):
    wire.stream(wire.delta(content="one"), wire.event(error={"message": "the engine died", "code": 500}))


def not_json(call, wire):
    wire.stream(wire.delta(content="one"), b"data: {oops\n\n")


def silent(call, wire):
    wire.begin()
    wire.hold()


def stalled(call, wire):
    wire.begin()
    wire.chunk(wire.delta(content="one"))
    wire.hold()


FAULTS = {
    1: ("http-server-error", server_error),
    2: ("reset", reset),
    3: ("truncated", truncated),
    4: ("reset", cut_off),
    5: ("in-band-error", in_band),
    6: ("protocol-error", not_json),
    7: ("timeout-first-token", silent),
    8: ("timeout-total", stalled),
}


@pytest.fixture(scope="module")
def server(scripted_for_all):
    return scripted_for_all(broken)


@pytest.fixture(scope="module")
def faulty(good, server):
    return good(
        f"--url {server.url} {LOAD} --request-timeout-seconds {STALL_S} --first-token-timeout-seconds {FIRST_S}"
    )


@pytest.mark.parametrize("row", range(ROWS))
def test_every_fault_has_its_outcome(faulty, row):
    assert faulty.requests["outcome"][row] == FAULTS.get(row, ("ok",))[0]
    assert (faulty.requests["fault"][row] is None) == (row not in FAULTS)


def test_the_outcomes_add_up_to_what_was_planned(faulty):
    assert faulty.report.outcomes.planned == ROWS
    assert faulty.counts == {
        "ok": 2, "truncated": 1, "reset": 2, "http-server-error": 1, "in-band-error": 1, "protocol-error": 1,
        "timeout-first-token": 1, "timeout-total": 1,
    }  # fmt: skip
    assert faulty.number("error_rate") == 80


def test_a_failing_server_is_a_result_and_no_failure_of_the_run(faulty):
    assert faulty.against == []
    assert faulty.check("failures").verdict == "DEGRADED"  # 8 of 10: the rest says little


def test_only_successes_are_in_the_latencies(faulty):
    assert faulty.report.metrics["request_latency"].count == 2
    assert faulty.report.metrics["input_sequence_length"].count == 2


def test_the_servers_words_are_shown_and_cannot_move_the_cursor(faulty):
    assert faulty.requests["fault"][5] == "the engine died (500)"
    assert faulty.requests["fault"][1] == "HTTP 500: out of \\x1b[31mmemory (500)"
    assert (
        "1 x http-server-error: HTTP 500: out of \\x1b[31mmemory (500) (faults/http-server-error-1.http)\n"
        in faulty.out
    )
    assert "\x1b" not in faulty.out + faulty.err + (faulty.path / "report.json").read_text()


def test_a_sample_of_every_kind_is_kept(faulty):
    faults = {fault["outcome"]: fault for fault in faulty.report.outcomes.faults}
    assert faults["http-server-error"]["sample"] == "faults/http-server-error-1.http"
    assert (faulty.path / "faults/http-server-error-1.http").read_bytes().startswith(b"HTTP/1.1 500 Internal")
    assert (
        (faulty.path / "faults/in-band-error-1.http").read_bytes().endswith(b"data: [DONE]\n\n\r\n0\r\n\r\n")
    )
    assert sum(fault["count"] for fault in faulty.report.outcomes.faults) == 8


def test_time_limits_are_kept_from_the_send_on(faulty):
    rows = faulty.requests
    waited_s = (rows["done_ns"] - rows["sent_ns"]) / 1e9
    assert waited_s[7] >= FIRST_S
    assert waited_s[8] >= STALL_S
    assert rows["first_ns"][7] is None
    assert rows["first_ns"][8] is not None


def test_a_failed_request_is_not_sent_again(server, faulty):
    assert [call.row for call in server.posts] == [None, *range(ROWS)]
    assert faulty.report.outcomes.retries == 0


def test_when_all_fail_there_is_a_report_and_exit_code_1(profile, scripted):
    run = profile(f"--url {scripted(server_error).url} {LOAD}")
    assert run.code == 1
    assert run.counts == {"http-server-error": ROWS}
    assert run.number("error_rate") == 100
    for name in ("time_to_first_token", "request_latency", "output_token_throughput"):
        assert (run.number(name), run.report.metrics[name].reason) == (None, "no request succeeded.")
    assert run.out.startswith("INVALID: no request succeeded.")


def test_a_server_that_is_gone_during_the_run_is_a_failed_connection(good, scripted):
    def last(call, wire):
        server.vanish()
        wire.answer(call)
        wire.close()

    server = scripted(last)
    run = good(f"--url {server.url} {LOAD}")
    assert run.counts == {"ok": 1, "connect-refused": ROWS - 1}
    assert "refused" in run.requests["fault"][1]


def test_a_connection_closed_before_a_byte_came_back_is_tried_again_once_and_counted(good, scripted):
    def script(call, wire):
        if call.nth:
            wire.close()  # as a server does whose idle limit strikes just now
        else:
            wire.answer(call)

    server = scripted(script)
    run = good(f"--url {server.url} {LOAD}")
    assert run.counts == {"ok": ROWS}
    assert run.report.outcomes.retries == ROWS - 1
    assert run.requests["retries"].to_list() == [0] + [1] * (ROWS - 1)
    assert [call.row for call in server.posts] == [None, 0, *(row for row in range(1, ROWS) for _ in "12")]
    assert run.number("error_rate") == 0


def test_a_server_that_closes_after_every_stream_costs_nothing_but_connections(good, scripted):
    def script(call, wire):
        wire.answer(call)
        wire.close()

    server = scripted(script)
    run = good(f"--url {server.url} {LOAD} --concurrency 2")
    assert run.counts == {"ok": ROWS}
    assert server.connections >= ROWS
    assert sorted(call.row for call in server.posts[1:]) == list(range(ROWS))


def test_a_new_connection_that_is_closed_at_once_is_no_reason_to_try_again(good, scripted):
    server = scripted(lambda call, wire: wire.close() if call.row == 0 else wire.answer(call))
    run = good(f"--url {server.url} {LOAD}")
    assert run.counts == {"ok": ROWS - 1, "reset": 1}
    assert run.report.outcomes.retries == 0
