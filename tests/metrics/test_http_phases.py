from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from loadstone.metrics import Tables
from loadstone.metrics.http_phases import PHASES, phases_ns, residual_ns
from loadstone.read.schema import LATER

MOMENTS = ("due", "connect", "tcp", "connected", "sent", "written", "answered", "done")


@pytest.fixture
def request_at(answer):
    """A request with these moments, in ms; those not named never came."""

    def make(outcome="ok-length", **moments):
        made = answer(outcome=outcome, tokens=1)
        at = {f"{name}_ns": None for name in MOMENTS}
        at |= {f"{name}_ns": round(ms * 1e6) for name, ms in moments.items()}
        return made | at | {"first_ns": None, "last_ns": None, "first_answer_ns": None}

    return make


def phases_ms(tables):
    return [tuple(ns / 1e6 for ns in row) for row in phases_ns(tables).rows()]


def test_every_phase_of_a_request_that_opened_a_connection(tables, request_at):
    one = request_at(due=0, connect=2, tcp=5, connected=11, sent=12, written=14, answered=30, done=75)
    assert phases_ms(tables(one)) == [(3.0, 0.0, 3.0, 6.0, 2.0, 16.0, 45.0)]


def test_a_kept_alive_connection_has_nothing_to_open(tables, request_at):
    one = request_at(due=0, sent=4, written=5, answered=9, done=10)
    assert phases_ms(tables(one)) == [(4.0, 0.0, 0.0, 0.0, 1.0, 4.0, 1.0)]


def test_the_phase_in_which_a_request_was_given_up_has_the_rest(tables, request_at):
    refused = request_at("connect-refused", due=0, connect=1, done=3)
    untrusted = request_at("tls", due=0, connect=1, tcp=2, done=9)
    stuck = request_at("timeout-total", due=0, sent=1, done=5)
    silent = request_at("timeout-first-token", due=0, sent=1, written=2, done=9)
    assert phases_ms(tables(refused, untrusted, stuck, silent)) == [
        (1.0, 0.0, 2.0, 0.0, 0.0, 0.0, 0.0),
        (1.0, 0.0, 1.0, 7.0, 0.0, 0.0, 0.0),
        (1.0, 0.0, 0.0, 0.0, 4.0, 0.0, 0.0),
        (1.0, 0.0, 0.0, 0.0, 1.0, 7.0, 0.0),
    ]


def test_an_answer_before_the_request_is_out_was_not_waited_for(tables, request_at, result):
    early = request_at(due=0, sent=1, written=8, answered=3, done=10)
    never_out = request_at(due=0, sent=1, answered=3, done=10)
    found = tables(early, never_out)
    assert phases_ms(found) == [(1.0, 0.0, 0.0, 0.0, 2.0, 0.0, 7.0)] * 2
    assert result("http_req_waiting", found).note == (
        "2 requests had an answer before being written whole: nothing was waited."
    )


def test_a_lost_try_is_in_blocked_and_a_detour_in_waiting(tables, request_at):
    again = request_at(due=0, connect=6, tcp=7, connected=7, sent=7, written=8, answered=20, done=30)
    cut_off_between = request_at("cut", due=0, sent=1, written=2, connect=5, done=9)
    assert phases_ms(tables(again, cut_off_between)) == [
        (6.0, 0.0, 1.0, 0.0, 1.0, 12.0, 10.0),
        (1.0, 0.0, 0.0, 0.0, 1.0, 7.0, 0.0),
    ]


def test_what_was_never_due_or_never_ended_has_no_phases(tables, request_at, unsent):
    no_due = request_at(sent=1, done=2) | {"due_ns": None}
    found = tables(no_due, unsent(due=3))
    assert phases_ns(found).null_count().row(0) == (2,) * len(PHASES)


@given(st.lists(st.tuples(*[st.none() | st.integers(0, 1 << 60)] * len(MOMENTS)), min_size=1, max_size=20))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_phases_are_never_negative_and_add_up_exactly(tables, answer, rows):
    names = [f"{name}_ns" for name in MOMENTS]
    found = tables(*(answer(tokens=1) | dict(zip(names, row, strict=True)) for row in rows))
    for (due, *_, done), spent in zip(rows, phases_ns(found).rows(), strict=True):
        if due is None or done is None:
            assert spent == (None,) * len(PHASES)
        else:
            assert min(spent) >= 0
            assert sum(spent) == max(done - due, 0)


@given(st.lists(st.none() | st.integers(0, 100), min_size=len(MOMENTS), max_size=len(MOMENTS)))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_residual_is_left_where_moments_are_out_of_order(tables, answer, moments):
    *others, written, answered, done = moments
    if written is not None and answered is not None:
        written = min(written, answered)
    came = [at for at in (*others, written, answered, done) if at is not None]
    row = answer(tokens=1) | dict(zip([f"{name}_ns" for name in MOMENTS], moments, strict=True))
    (residual,) = residual_ns(tables(row))
    assert (residual == 0) == (done is None or came == sorted(came))


def test_a_residual_says_by_how_much(tables, request_at, unsent):
    swapped = request_at(due=0, connect=2, tcp=9, connected=6, sent=7, done=8)
    too_early = request_at("http-error", due=5, sent=6, written=6, answered=6, done=4)
    between_two_tries = request_at("cut", due=0, sent=1, written=2, connect=5, done=9) | {"retries": 1}
    given_up = unsent(due=7) | {"done_ns": 0}
    found = tables(swapped, too_early, between_two_tries, given_up)
    assert (residual_ns(found) / 1e6).tolist() == [3.0, 7.0, 0.0, 0.0]


def test_the_metrics_are_the_phases_and_their_means_add_up(tables, request_at, mean):
    opened = request_at(due=0, connect=2, tcp=5, connected=11, sent=12, written=14, answered=30, done=75)
    kept = request_at(due=10, sent=14, written=15, answered=19, done=20)
    failed = request_at("connect-refused", due=0, connect=1, done=900)
    found = tables(opened, kept, failed, end_ms=1000)
    means = {name: mean(f"http_req_{name}", found) for name in (*PHASES, "duration", "total")}
    assert means == pytest.approx(
        {
            "blocked": 3.5, "dns_lookup": 0.0, "connecting": 1.5, "tls_handshaking": 3.0, "sending": 1.5,
            "waiting": 10.0, "receiving": 23.0, "duration": 34.5, "total": 42.5,
        }
    )  # fmt: skip
    assert sum(means[name] for name in PHASES) == pytest.approx(means["total"])
    assert mean("http_req_connection_reused", found) == 50.0  # the third was never sent


def test_a_simulation_has_no_connections(tables, request_at, reason):
    found = tables(request_at(due=0, sent=1, written=1, answered=5, done=9), simulated=True)
    for name in ("connecting", "tls_handshaking", "dns_lookup", "connection_reused"):
        assert reason(f"http_req_{name}", found) == "there are no connections on the virtual clock."


def test_of_an_older_run_is_told_what_it_noted(frame, run_log, request_at, result, reason):
    one = request_at(due=0, connect=2, connected=11, sent=12, written=14, done=75)
    table = frame(one).drop(LATER)
    found = Tables.read(table.lazy(), run_log(planned=1))
    for name in ("connecting", "tls_handshaking", "waiting", "receiving"):
        assert "did not note when" in reason(f"http_req_{name}", found)
    values = {name: result(f"http_req_{name}", found).values.tolist() for name in ("sending", "duration")}
    assert values == {"sending": [2.0], "duration": [63.0]}
    assert result("connect_time", found).values.tolist() == [9.0]
    assert residual_ns(found).tolist() == [0]
