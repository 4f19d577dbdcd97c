from __future__ import annotations

import pytest

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


def test_error_rate_is_the_share_that_ended_badly(tables, answer, unsent, result):
    rows = [answer(5), answer(5), answer(5), answer(5, outcome="http-error")]
    assert result("error_rate", tables(*rows, unsent())).value == 25.0
    found = result("error_rate", tables(*rows, answer(5, outcome="cut"), answer(5, outcome="cancelled")))
    assert (found.value, found.note) == (25.0, "2 requests cut off left out.")


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
