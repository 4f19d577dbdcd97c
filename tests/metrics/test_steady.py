"""Where the steady state is, and whether it is one."""

from __future__ import annotations

import numpy as np
import pytest
from tests.conftest import ns

from loadstone.metrics._steady import Steady, drifts, steady


def loop(answer, slots, rounds, latency=100.0, start=0.0, grow=0.0):
    """A closed loop: every slot sends the next request as the one before is answered."""
    rows = []
    for slot in range(slots):
        at = start + slot * latency / slots
        for _ in range(rounds):
            took = latency + grow * at
            rows.append(answer(at + took / 2, at + took, sent=at))
            at += took
    return rows


def poisson(answer, rate, seconds, latency=1000.0, seed=5, grow=0.0):
    """Requests with Poisson gaps."""
    rng = np.random.default_rng(seed)
    sent = np.cumsum(rng.exponential(1000 / rate, int(rate * seconds)))
    return [answer(at + 20, at + latency + grow * at, sent=at, due=at) for at in sent.tolist()]


def s(span):
    """The span in seconds."""
    return (span.start_ns - ns(0)) / 1e9, (span.stop_ns - ns(0)) / 1e9


def test_a_closed_loop_is_steady_while_its_slots_are_full(tables, answer):
    rows = [*loop(answer, 4, 50), answer(5400, 9000, sent=5100)]
    span = steady(tables(*rows, cap=4, end_ms=9000))
    start, stop = s(span)
    assert (span.level, span.level_is, span.flight_ns) == (4.0, "cap", 100e6)
    assert start == pytest.approx(0.1, abs=0.06)
    assert stop == pytest.approx(5.0, abs=0.11)


def test_turning_from_one_answer_to_the_next_request_ends_no_span(tables, answer):
    rows = [answer(100 * i + 40, 100 * i + 98, sent=100 * i) for i in range(60)]
    start, stop = s(steady(tables(*rows, cap=1, end_ms=6000)))
    assert (start, stop) == (0.0, pytest.approx(6.0, abs=0.1))


def test_a_limit_that_is_not_reached_is_no_measure(tables, answer):
    rows = [answer(100 * i + 50, 100 * i + 95, sent=100 * i, due=100 * i) for i in range(80)]
    span = steady(tables(*rows, rate=10, cap=8, end_ms=8000))
    assert span.level_is == "plateau"
    assert span.level == pytest.approx(0.95, abs=0.06)


@pytest.mark.parametrize("rate", [4, 16, 64])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_poisson_arrivals_have_a_plateau_without_ramp_and_drain(rate, seed, tables, answer):
    rows = poisson(answer, rate, 60, seed=seed)
    last_s = (rows[-1]["sent_ns"] - ns(0)) / 1e9
    span = steady(tables(*rows, rate=float(rate), end_ms=1000 * last_s + 1000))
    start, stop = s(span)
    assert span.level_is == "plateau"
    assert span.level == pytest.approx(rate, rel=0.25)
    assert start <= 12
    assert start >= 0.4 or rate == 4  # a few requests at once are soon the usual few
    assert last_s - 12 <= stop <= last_s
    assert not any(drift.found for drift in drifts(tables(*rows, rate=float(rate)), span))


def test_a_ramp_is_left_out(tables, answer):
    # A slot more every second for eight seconds, then eight slots.
    rows = [
        answer(at + 20, at + 100, sent=at)
        for slot in range(8)
        for at in np.arange(1000 * slot, 30_000, 100).tolist()
    ]
    start, stop = s(steady(tables(*rows, cap=8, end_ms=30_000)))
    assert start == pytest.approx(7.0, abs=0.2)
    assert stop == pytest.approx(30.0, abs=0.2)


def test_a_dip_ends_a_closed_loop_s_span_and_the_longer_one_counts(tables, answer):
    rows = [row for row in loop(answer, 4, 90) if not ns(3000) <= row["sent_ns"] < ns(3600)]
    start, stop = s(steady(tables(*rows, cap=4, end_ms=9000)))
    assert start == pytest.approx(3.65, abs=0.15)
    assert stop == pytest.approx(9.0, abs=0.2)


def test_too_short_a_run_has_none_and_says_why(tables, answer):
    rows = [answer(20, 1000, sent=0), answer(1020, 2000, sent=1000)]
    assert steady(tables(*rows, cap=1, end_ms=2000)) == (
        "requests were sent for 1 s, and one takes 1 s in the middle: too short for a steady state."
    )


def test_without_a_request_there_is_none(tables, unsent):
    assert steady(tables()) == "no request was sent."
    assert steady(tables(unsent())) == "no request was sent."


def test_requests_of_a_warm_up_are_in_flight_as_well(frame, run_log, phase_log, answer):
    from loadstone.metrics import Tables

    load = {"phases": (
        {"name": "warm", "kind": "warmup", "concurrency": 4, "request_count": 8},
        {"name": "a", "concurrency": 4, "handover": "seamless"},
    )}  # fmt: skip
    rows = [row | {"phase": "warm"} for row in loop(answer, 4, 1, latency=400, start=-300)]
    rows += [answer(at + 10, at + 400, sent=at, phase="a") for k in range(4) for at in np.arange(100 * k + 100, 8000, 400).tolist()]  # fmt: skip
    logs = [phase_log("warm", -400, 0, 400, kind="warmup"), phase_log("a", 0, 8000, 8300, seamless=True)]
    table = frame(*rows).lazy()
    start, _ = s(steady(Tables.read(table, run_log(phases=logs, load=load))))
    assert start == pytest.approx(0.1, abs=0.01)


def test_latency_that_grows_is_a_trend(tables, answer):
    run = tables(*poisson(answer, 20, 60, grow=0.01), rate=20.0, end_ms=62_000)
    span = steady(run)
    assert isinstance(span, Steady)
    drift = {one.of: one for one in drifts(run, span)}["request_latency"]
    assert drift.found
    assert drift.change == pytest.approx(0.45, abs=0.1)  # from 1,020 to 1,600 ms, of 1,300
    assert drift.p < 0.001


def test_of_a_few_requests_no_trend_is_told(tables, answer):
    run = tables(*loop(answer, 1, 12), cap=1, end_ms=1200)
    found = drifts(run, steady(run))
    assert [drift.of for drift in found] == ["request_latency", "time_to_first_token", "request_throughput"]
    assert all(drift.found is None and drift.reason.startswith("too few requests") for drift in found)


def test_a_load_that_outgrows_the_server_has_a_level_that_rises(tables, answer):
    # Every answer takes longer than the one before by a tenth of the gap between two.
    rows = [answer(100 * i + 50, 110 * i + 100, sent=100 * i, due=100 * i) for i in range(600)]
    run = tables(*rows, rate=10, end_ms=70_000)
    drift = drifts(run, steady(run))[0]
    assert (drift.of, drift.found) == ("concurrency", True)
    assert drift.change > 0.2
