"""More offered than a cap lets through: every request is accounted for, and the wait is in every number that is told.

An answer of 13 tokens takes at least 130 ms, so two slots serve at most 15.4 of the 50 requests a second.
"""

from __future__ import annotations

from statistics import median

import polars as pl
import pytest
from tests.e2e.shapes import peak

OVERLOAD = "--isl 16 --osl 13 --extra-inputs ignore_eos:true --request-rate 50 --arrival-pattern constant --concurrency 2"
SERVICE_S = 0.13
NO_SLOT = "still waiting for a slot when the time was over"


@pytest.fixture(scope="module")
def server(simulate):
    return simulate("--step-ms 10")


@pytest.fixture(scope="module")
def capped(good, server):
    return good(f"--url {server.url} --streaming {OVERLOAD} --benchmark-duration 4 --workers 2")


def test_offered_is_rate_times_duration_and_sent_plus_not_sent(capped):
    load = capped.report.load
    assert load.offered == load.sent + load.not_sent == 200
    assert (load.never_due, load.queued_at_end, load.timed) == (0, load.not_sent, True)
    assert 20 < load.sent <= 2 * (4 / SERVICE_S + 1)
    assert capped.counts == {"ok-length": load.sent, "not-sent": load.not_sent}
    assert load.asked_rate == pytest.approx(50, rel=1e-9)
    assert load.offered_rate == pytest.approx(50, rel=1e-9)
    assert load.completed_rate < 2 / SERVICE_S
    capped.adds_up()


def test_what_was_not_sent_says_when_it_was_due_and_why_it_was_not(capped):
    assert capped.due_ns == [20_000_000 * i for i in range(200)]
    waiting = capped.requests.filter(pl.col("outcome") == "not-sent")
    assert set(waiting["fault"]) == {NO_SLOT}
    assert waiting["sent_ns"].null_count() == waiting["first_ns"].null_count() == len(waiting)
    assert capped.report.outcomes.not_sent == ({"reason": NO_SLOT, "count": len(waiting)},)
    sent = capped.requests.filter(pl.col("outcome") != "not-sent")
    assert sent["due_ns"].max() < waiting["due_ns"].min(), "whoever was due first is sent first"
    assert sent["sent_ns"].max() < capped.measured.stop_ns == capped.measured.start_ns + 4_000_000_000


def test_the_cap_is_kept_by_all_workers_together(capped):
    assert capped.requests["worker"].drop_nulls().n_unique() == 2
    assert peak(capped.requests) == capped.report.metrics["concurrency"].max == 2


def test_latencies_from_due_grow_and_those_from_send_do_not_hide_it(capped):
    sent = capped.requests.drop_nulls("sent_ns")
    from_due_ms = ((sent["last_ns"] - sent["due_ns"]) / 1e6).to_list()
    quarter = len(from_due_ms) // 4
    assert median(from_due_ms[:quarter]) < 1_000 < 2_000 < median(from_due_ms[-quarter:])
    growth = capped.report.load.growth
    assert growth.last_ms > 2_000 > growth.first_ms
    assert capped.number("request_latency_from_due") == pytest.approx(sum(from_due_ms) / len(sent), rel=1e-9)
    assert capped.number("request_latency") < capped.number("request_latency_from_due") / 3


def test_what_was_never_sent_is_censored_in_the_latencies_from_due(capped):
    result = capped.report.metrics["request_latency_from_due"]
    assert result.count == capped.report.load.sent
    assert result.with_censored["p50"] is None or result.with_censored["p50"] > result.p50


def test_the_queue_is_shown_growing(capped):
    series = capped.report.series
    assert (series.step_s, series.offered[:4], sum(series.sent)) == (1.0, (50,) * 4, capped.report.load.sent)
    queued = series.queued[:4]
    assert list(queued) == sorted(queued)
    assert queued[3] > 3 * queued[0] > 0
    assert capped.report.load.queue_growing is True


def test_the_verdict_names_the_cap(capped):
    assert capped.report.run.saturated is True
    assert capped.report.load.bound_by == "cap"
    assert capped.report.load.bound_why.startswith("at most 2 in flight: ")
    assert "SATURATED: " in capped.out
    load = capped.report.load
    assert f"offered 200 · sent {load.sent} · not sent {load.not_sent}" in capped.out


def test_a_queue_that_is_drained_is_sent_to_its_end(good, server):
    run = good(f"--url {server.url} {OVERLOAD} --benchmark-duration 0.4 --drain-queue")
    assert run.counts == {"ok-length": 20}
    assert (run.report.load.sent, run.report.load.not_sent) == (20, 0)
    assert run.due_ns == [20_000_000 * i for i in range(20)]
    late = run.requests.filter(pl.col("sent_ns") > run.measured.start_ns + 400_000_000)
    assert len(late) >= 20 - 2 * (0.4 / SERVICE_S + 1)


@pytest.mark.slow
def test_half_a_minute_at_three_times_what_goes_through(good, server):
    run = good(f"--url {server.url} {OVERLOAD} --benchmark-duration 30")
    load = run.report.load
    assert load.offered == load.sent + load.not_sent == 1_500
    assert 400 <= load.sent <= 464
    assert (load.bound_by, load.queue_growing, run.report.run.saturated) == ("cap", True, True)
    assert load.growth.last_ms > 10_000
    assert list(run.report.series.queued[:30]) == sorted(run.report.series.queued[:30])


def test_what_the_composer_did_not_come_to_was_offered_all_the_same(good, engine):
    """Behind a cap the composer stays only so far ahead; the due times are those of the schedule."""
    run = good(
        f"--url {engine.url} --isl 400 --osl 2 --request-rate 8000 --arrival-pattern constant --concurrency 2"
        " --benchmark-duration 2 --no-inputs-json"
    )
    assert run.report.load.offered == 16_000 == run.report.outcomes.planned
    assert run.report.load.sent + run.report.load.not_sent == 16_000
    due_ns = run.requests["due_ns"]
    assert (due_ns - run.measured.start_ns == [i * 125_000 for i in range(16_000)]).all()
