"""Requests that are cancelled because the plan says so: exactly those, after their delay, and held against nobody."""

from __future__ import annotations

import polars as pl
import pytest
from tests.e2e.shapes import Recorded

from loadstone.errors import Exit

CANCELLING = "--isl 16 --streaming --extra-inputs ignore_eos:true --request-cancellation-rate 30"
DELAY_NS = 50_000_000
TURN_CANCELLED = "an earlier turn of its conversation was cancelled as asked"


@pytest.fixture(scope="module")
def slow(simulate):
    """Answers of 40 tokens take 400 ms."""
    return simulate("--step-ms 10")


@pytest.fixture(scope="module")
def cancelled(good, slow):
    return good(
        f"--url {slow.url} {CANCELLING} --request-cancellation-delay 0.05 --osl 40 --request-rate 80"
        " --request-count 60 --warmup-request-count 20 --seed 5 --workers 2"
    )


def chosen(run):
    """The requests that the plan cancels."""
    return [row.request for row in Recorded(run, "measured").plan if row.cancelled]


def test_those_are_cancelled_that_the_plan_chose(cancelled):
    rows = chosen(cancelled)
    assert 8 <= len(rows) <= 28, "30 % of 60, within three standard deviations"
    assert cancelled.counts == {"ok-length": 60 - len(rows), "cancelled-as-planned": len(rows)}
    ended = cancelled.requests.filter(pl.col("outcome") == "cancelled-as-planned")
    assert ended["request"].to_list() == rows
    assert len(cancelled.table) == 80


def test_nothing_is_cancelled_in_a_warm_up(cancelled):
    assert cancelled.report.outcomes.warmup == {"ok-length": 20}
    assert not any(row.cancelled for row in Recorded(cancelled, "warmup").plan)


def test_they_are_cancelled_their_delay_after_they_were_sent(cancelled):
    ended = cancelled.requests.filter(pl.col("outcome") == "cancelled-as-planned")
    assert ((ended["done_ns"] - ended["sent_ns"]) >= DELAY_NS).all()
    assert ((ended["done_ns"] - ended["sent_ns"]) / 1e6).median() < 300


def test_they_are_no_errors_and_in_no_latency(cancelled):
    rows = chosen(cancelled)
    assert cancelled.number("error_rate") == 0
    assert cancelled.report.metrics["error_rate"].note == f"{len(rows)} requests cancelled as asked left out."
    latency = cancelled.report.metrics["request_latency"]
    assert (latency.count, latency.cut_off) == (60 - len(rows), len(rows))
    assert cancelled.report.outcomes.faults == ()
    assert cancelled.check("failures").verdict == "VALID"


def test_the_account_has_them_among_those_that_were_sent(cancelled):
    load = cancelled.report.load
    assert (load.offered, load.sent, load.cancelled_as_planned) == (60, 60, len(chosen(cancelled)))
    assert load.arrivals[0].cancelled_share == 0.3
    assert load.arrivals[0].cancel_after_s == 0.05
    assert load.arrivals[0].words.endswith("30 % cancelled 0.05 s after they were sent")


def test_the_server_sees_them_leave(cancelled, slow):
    truth = slow.truth(cancelled, 81)
    rows = {f"{cancelled.log.id}-{row}" for row in chosen(cancelled)}
    assert {name for name, row in truth.items() if row.tokens < 40 and "preflight" not in name} == rows


def test_an_answer_that_is_quicker_than_the_delay_counts(good, simulate):
    run = good(
        f"--url {simulate('--null').url} {CANCELLING} --request-cancellation-delay 20 --osl 1 --concurrency 4"
        " --request-count 40 --seed 5"
    )
    assert chosen(run) != []
    assert run.counts == {"ok-length": 40}
    assert run.report.load.cancelled_as_planned == 0


def test_where_all_are_cancelled_nothing_is_known_and_the_verdict_says_why(profile, scripted):
    server = scripted(lambda call, wire: wire.hold())
    run = profile(
        f"--url {server.url} --model m --isl 16 --streaming --request-cancellation-rate 100 --request-count 30"
        " --request-rate 200"
    )
    assert run.code == Exit.FAILED
    assert run.counts == {"cancelled-as-planned": 30}
    assert "every request was cancelled as asked" in run.check("succeeded").finding
    assert "--request-cancellation-rate" in run.check("succeeded").advice
    assert run.report.metrics["error_rate"].mean is None
    assert run.report.metrics["error_rate"].reason.startswith("every request is left out")


def test_of_a_conversation_nothing_follows_a_cancelled_turn(good, slow):
    run = good(
        f"--url {slow.url} {CANCELLING} --request-cancellation-delay 0.05 --osl 20 --conversation-turn-mean 3"
        " --num-sessions 12 --concurrency 12 --seed 5"
    )
    rows = Recorded(run, "measured").plan
    first = {}
    for row in rows:
        if row.cancelled:
            first.setdefault(row.conversation, row.turn)
    never = [row.request for row in rows if row.turn > first.get(row.conversation, 3)]
    assert run.counts == {
        "ok-length": 36 - len(first) - len(never),
        "cancelled-as-planned": len(first),
        "not-sent": len(never),
    }
    left = run.requests.filter(pl.col("outcome") == "not-sent")
    assert left["request"].to_list() == never
    assert set(left["fault"]) == {TURN_CANCELLED}
    assert (run.report.load.never_due, run.report.load.not_sent) == (len(never), 0)
