from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.conftest import ns

from loadstone.read.outcome import OUTCOMES
from loadstone.stats import summarise


def test_concurrency_is_weighted_by_time(tables, answer, result):
    run = tables(answer(100, sent=0), answer(80, sent=20), answer(60, sent=20))
    found = result("concurrency", run)
    levels = summarise(found.values)
    assert levels.mean == pytest.approx((20 * 1 + 40 * 3 + 20 * 2 + 20 * 1) / 100)
    assert (levels.min, levels.max) == (1.0, 3.0)
    assert levels.percentiles["p25"] == 1.0  # 40 % of the time
    assert levels.percentiles["p50"] == 2.0
    assert levels.percentiles["p75"] == 3.0
    assert found.counted == 4


def test_a_slot_that_is_filled_at_once_is_one_request_in_flight(tables, answer, result):
    levels = summarise(result("concurrency", tables(answer(10, sent=0), answer(20, sent=10))).values)
    assert (levels.min, levels.mean, levels.max) == (1.0, 1.0, 1.0)


def test_pauses_count_as_nothing_in_flight(tables, answer, result):
    levels = summarise(result("concurrency", tables(answer(10, sent=0), answer(40, sent=30))).values)
    assert (levels.min, levels.mean) == (0.0, 0.5)


@pytest.mark.parametrize("outcome", ["cut", "timeout-first-token", "too-large"])
def test_what_the_client_ended_is_in_flight_until_then_or_the_end_of_the_window(
    outcome, tables, answer, result
):
    ended = answer(5, sent=0, done=500, outcome=outcome)
    levels = summarise(result("concurrency", tables(ended, answer(100, sent=50))).values)
    assert levels.mean == pytest.approx(1.5)
    levels = summarise(result("concurrency", tables(ended, answer(1000, sent=0))).values)
    assert levels.mean == pytest.approx(1.5)


def test_rates_of_what_was_due_sent_and_completed(tables, answer, unsent, mean):
    rows = [answer(100 * i + 250, due=100 * i, sent=200 * i) for i in range(5)]
    run = tables(*rows, unsent(due=500), rate=10)
    assert mean("offered_rate", run) == 10.0
    assert mean("sent_rate", run) == 5.0
    assert mean("completed_rate", run) == 10.0


def test_one_request_has_no_rate(tables, answer, reason):
    for name in ("offered_rate", "sent_rate", "completed_rate"):
        assert reason(name, tables(answer(5), rate=10)) == "a rate needs two requests at different moments."


def test_a_closed_loop_offers_no_rate(tables, answer, reason):
    assert "closed loop" in reason("offered_rate", tables(answer(5), answer(6)))


def test_of_a_closed_loop_among_other_phases_it_is_said_that_it_offers_no_rate(tables, phase_log, reason):
    logs = [phase_log(name, 0, 9) for name in ("low", "loop", "again")]
    phases = [{"name": "low", "request_rate": 5.0}, {"name": "loop", "concurrency": 2}]
    why = "it needs due times in every phase, and {}; phases in report.json has the numbers of each."
    for more, told in (
        ([], "phase loop is a closed loop"),
        (["again"], "phases loop, again are closed loops"),
    ):
        load = {"phases": (*phases, *({"name": name, "concurrency": 3} for name in more))}
        run = tables(phases=logs[: 2 + len(more)], load=load)
        assert reason("offered_rate", run) == why.format(told)
    alone = run.of_phases("loop")
    assert reason("offered_rate", alone).startswith("it needs due times (a request rate or a schedule)")


def test_error_rate_is_the_share_that_ended_badly(tables, answer, unsent, result):
    rows = [answer(5), answer(5), answer(5), answer(5, outcome="http-error")]
    assert result("error_rate", tables(*rows, unsent())).value == 25.0
    found = result("error_rate", tables(*rows, answer(5, outcome="cut"), answer(5, outcome="cancelled")))
    assert (found.value, found.note) == (25.0, "2 requests cut off left out.")


def test_what_was_cancelled_as_asked_is_counted_apart(tables, answer, result):
    rows = [*(answer(5) for _ in range(9)), answer(5, outcome="reset"), answer(5, outcome="cut")]
    rows += [answer(5, outcome="cancelled-as-planned") for _ in range(3)]
    found = result("error_rate", tables(*rows, answer(outcome="client-fault")))
    assert found.value == 10.0
    assert found.note == (
        "1 request cut off, 3 requests cancelled as asked and 1 request lost by the client left out."
    )


def test_without_failures_the_error_rate_is_known_to_be_zero(tables, answer, mean, reason):
    assert mean("error_rate", tables(answer(5))) == 0.0
    assert "1 request cut off" in reason("error_rate", tables(answer(5, outcome="cut")))


def test_what_the_client_lost_is_no_error_of_the_server(tables, answer, result, reason):
    lost = [answer(outcome="client-fault") for _ in range(5)]
    found = result("error_rate", tables(*(answer(5) for _ in range(95)), *lost))
    assert (found.value, found.note) == (0.0, "5 requests lost by the client left out.")
    assert reason("error_rate", tables(*lost)) == "every request is left out: 5 requests lost by the client."


def test_what_a_time_limit_ended_is_an_error_of_the_server(tables, answer, mean):
    assert mean("error_rate", tables(answer(5), answer(done=900, outcome="timeout-first-token"))) == 50.0


def test_counts_and_duration(tables, answer, mean, reason):
    run = tables(answer(500, sent=100), answer(2100, sent=200, outcome="reset"))
    assert mean("request_count", run) == 1.0
    assert mean("benchmark_duration", run) == 2.0
    assert reason("request_count", tables()) == "no request was sent."


def test_what_a_dead_worker_lost_was_offered_and_never_sent(tables, answer, mean):
    lost = [answer(outcome="client-fault", due=at) | {"sent_ns": None, "done_ns": None} for at in (40, 60)]
    run = tables(answer(100), *lost, rate=10, end_ms=90)
    assert counts(mean, run) == (3, 1, 0)
    assert mean("queue_depth", run) == pytest.approx(((90 - 40) + (90 - 60)) / 100)


def counts(mean, run):
    return tuple(mean(name, run) for name in ("offered_count", "sent_count", "queued_count"))


def test_offered_is_what_was_sent_and_what_was_due_and_not_sent(tables, answer, unsent, mean):
    never_due = unsent() | {"due_ns": None}
    rows = [answer(50), answer(5, outcome="cut"), answer(5, outcome="reset"), unsent(due=7), never_due]
    run = tables(*rows, rate=10)
    assert counts(mean, run) == (4, 3, 1)
    assert counts(mean, tables(unsent(due=7), rate=10)) == (1, 0, 1)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=50)
@given(outcomes=st.lists(st.sampled_from([*OUTCOMES, "never due"]), min_size=1, max_size=12))
def test_offered_is_sent_and_not_sent_whatever_happened(outcomes, tables, answer, unsent, mean):
    made = {"not-sent": unsent(), "never due": unsent() | {"due_ns": None}}
    run = tables(*(made.get(name) or answer(5, outcome=name) for name in outcomes), rate=10)
    offered, sent, queued = counts(mean, run)
    assert offered == sent + queued == len(outcomes) - outcomes.count("never due")


def test_only_due_times_can_be_offered(tables, answer, mean, reason):
    assert mean("sent_count", tables(answer(5))) == 1
    for name in ("offered_count", "queued_count", "queue_depth"):
        assert "closed loop" in reason(name, tables(answer(5)))
    assert reason("offered_count", tables(rate=10)) == "no request was planned."


def test_late_is_what_the_client_sent_late(tables, answer, mean, reason):
    turns = [
        answer(80, conversation=1, turn=0),
        answer(200, due=50, sent=85.1, conversation=1, turn=1),  # 5.1 ms after the turn before it
        answer(300, due=250, sent=255, conversation=1, turn=2),  # 5 ms are not late
    ]
    connecting = answer(50, due=0, sent=30) | {"connect_ns": ns(1), "connected_ns": ns(29)}
    assert mean("late_count", tables(*turns, connecting, answer(50, due=0, sent=9), rate=10)) == 2
    assert "limit" in reason("late_count", tables(*turns, rate=10, cap=2))


def test_the_queue_is_weighted_by_time(tables, answer, unsent, result):
    rows = [
        answer(40, due=0, sent=0),
        answer(80, due=10, sent=40),
        answer(100, due=20, sent=80),
        unsent(due=60),  # until the load stopped at 90
        unsent() | {"due_ns": None},
    ]
    found = result("queue_depth", tables(*rows, rate=10, cap=1, end_ms=90))
    depths = summarise(found.values)
    # 0 until 10, 1 until 20, 2 until 40, 1 until 60, 2 until 80, 1 until 90, 0 until 100
    assert depths.mean == pytest.approx((10 + 2 * 20 + 20 + 2 * 20 + 10) / 100)
    assert (depths.min, depths.max, found.counted) == (0.0, 2.0, 7)


def test_what_was_due_before_the_window_queues_in_it_only(tables, answer, mean):
    rows = [answer(100, due=0, sent=50), answer(100, due=0, sent=75)]
    assert mean("queue_depth", tables(*rows, rate=10, cap=1)) == pytest.approx(25 / 50)


def test_nothing_waits_where_all_is_sent_when_due(tables, answer, mean):
    assert mean("queue_depth", tables(answer(50), answer(90, sent=40), rate=10)) == 0.0


def test_rates_of_several_requests_at_one_moment(tables, answer, reason):
    run = tables(*(answer(50, due=0, sent=i) for i in range(3)), load={"request_rate": "inf"})
    assert reason("offered_rate", run) == "a rate needs two requests at different moments."
