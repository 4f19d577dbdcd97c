"""Requests that were cut off, with the run or at a time limit: left out of the plain latencies, taken into account in the curves beside them."""

from __future__ import annotations

import pytest

from loadstone.metrics import all_metrics
from loadstone.summary import measure

UNSENT = "due, but no slot was free until the load stopped"


@pytest.fixture
def measured(tables):
    """One metric of a run as it stands in the report."""
    return lambda name, *rows, **run: measure(all_metrics()[name], tables(*rows, **run))


@pytest.fixture
def cut(answer):
    """A request with these tokens that we ended at `done`."""
    return lambda *arrivals, done, outcome="cut", **more: answer(
        *arrivals, done=done, outcome=outcome, **more
    )


def test_a_request_that_we_ended_lasted_at_least_so_long(measured, answer, cut):
    found = measured("request_latency", answer(100), answer(200), answer(300), cut(50, done=250))
    assert (found.count, found.max, found.cut_off, found.censored) == (3, 300.0, 1, 1)
    # S: 3/4 at 100, 1/2 at 200, 0 at 300, since the one broken off at 250 is watched until then
    assert found.with_censored["p25"] == 100.0
    assert found.with_censored["p50"] == 200.0
    assert found.with_censored["p75"] == found.with_censored["p99"] == 300.0


OURS = ["cut", "cancelled", "cancelled-as-planned", "timeout-first-token", "timeout-idle", "timeout-total"]


@pytest.mark.parametrize("outcome", OURS)
def test_a_percentile_that_nobody_saw_is_at_least_the_longest_time(outcome, measured, answer, cut):
    found = measured("request_latency", answer(100), cut(50, done=900, outcome=outcome))
    assert (found.p99, found.with_censored["p50"], found.with_censored["p99"]) == (100.0, 100.0, None)
    assert found.with_censored_least == 900.0


def test_a_time_limit_breaks_off_what_would_have_taken_longer(measured, answer, cut):
    rows = [answer(10, 20), cut(done=300, outcome="timeout-first-token")]
    rows += [cut(30, 40, done=340, outcome="timeout-idle"), cut(50, 60, done=400, outcome="timeout-total")]
    first, whole = measured("time_to_first_token", *rows), measured("request_latency", *rows)
    assert (first.count, first.censored, whole.count, whole.censored) == (1, 1, 1, 3)
    assert (first.with_censored["p50"], first.with_censored["p75"]) == (30.0, 50.0)
    assert (first.with_censored["p90"], first.with_censored_least) == (None, 300.0)
    assert (whole.with_censored["p25"], whole.with_censored["p50"]) == (20.0, None)
    assert whole.with_censored_least == 400.0


@pytest.mark.parametrize("outcome", ["reset", "too-large", "timeout-connect", "client-fault"])
def test_without_one_there_is_no_curve(outcome, measured, answer):
    found = measured("request_latency", answer(100), answer(5, done=900, outcome=outcome))
    assert (found.cut_off, found.censored) == (0, 0)
    assert (found.with_censored, found.with_censored_least) == (None, None)


def test_a_first_token_that_had_come_was_seen(measured, answer, cut):
    found = measured("time_to_first_token", answer(10, 20), cut(30, 40, done=99), cut(done=70))
    assert (found.count, found.p50, found.cut_off, found.censored) == (1, 10.0, 2, 1)
    assert (found.with_censored["p25"], found.with_censored["p50"]) == (10.0, 30.0)
    assert (found.with_censored["p90"], found.with_censored_least) == (None, 70.0)


def test_first_tokens_of_cut_requests_make_a_curve_of_their_own(measured, answer, cut):
    found = measured("time_to_first_token", answer(10, 20), cut(30, 40, done=99))
    assert (found.cut_off, found.censored, found.with_censored["p99"]) == (1, 0, 30.0)


def test_an_answer_that_was_still_reasoning_had_no_first_output_token(measured, answer, cut):
    found = measured("time_to_first_output_token", answer(10), cut(5, done=60, first_answer_ns=None))
    assert (found.censored, found.with_censored["p99"], found.with_censored_least) == (1, None, 60.0)


def test_gaps_are_not_censored(measured, answer, cut):
    found = measured("inter_token_latency", answer(10, 20), cut(10, 40, done=60))
    assert (found.count, found.with_censored) == (1, None)


def test_from_due_a_request_never_sent_has_waited_until_the_stop(measured, answer, cut, unsent):
    rows = [answer(100, due=0), cut(150, due=0, done=700), unsent(due=400), unsent(due=2000)]
    found = measured("request_latency_from_due", *rows, rate=10, cap=2, end_ms=1000)
    assert (found.count, found.censored) == (1, 2)  # what was due after the stop was not waiting
    assert (found.with_censored["p25"], found.with_censored["p50"]) == (100.0, None)
    assert found.with_censored_least == 700.0
    assert measured("request_latency", *rows, rate=10, cap=2).censored == 1


def test_first_tokens_from_due_of_what_was_never_sent_have_waited_as_well(measured, answer, cut, unsent):
    rows = [answer(100, due=0, sent=60), cut(150, due=0, sent=90, done=700), unsent(due=400)]
    found = measured("time_to_first_token_from_due", *rows, rate=10, cap=2, end_ms=1000)
    assert (found.count, found.cut_off, found.censored) == (1, 2, 1)
    assert (found.with_censored["p25"], found.with_censored["p50"]) == (100.0, 150.0)
    assert (found.with_censored["p75"], found.with_censored_least) == (None, 600.0)
    assert measured("time_to_first_token", *rows, rate=10, cap=2).with_censored_least == 60.0


def test_the_wait_for_a_slot_ends_with_sending_also_of_what_was_cut(measured, answer, cut, unsent):
    rows = [answer(100, due=0, sent=20), cut(150, due=0, sent=30, done=700), unsent(due=400)]
    found = measured("queue_wait", *rows, rate=10, cap=2, end_ms=1000)
    assert (found.count, found.max, found.cut_off, found.censored) == (2, 30.0, 1, 1)
    assert (found.with_censored["p25"], found.with_censored["p50"], found.with_censored["p75"]) == (
        20,
        30,
        None,
    )


def test_without_any_success_it_is_known_how_long_they_took_at_least(measured, cut):
    rows = [*(cut(100 + k, done=900) for k in range(30)), *(cut(done=900) for _ in range(20))]
    first, whole = measured("time_to_first_token", *rows), measured("request_latency", *rows)
    for found in (first, whole):
        assert (found.count, found.p50, found.reason) == (0, None, "no request succeeded.")
        assert found.with_censored_least == 900.0
    assert (first.cut_off, first.censored, whole.cut_off) == (50, 20, 50)
    assert (first.with_censored["p50"], first.with_censored["p90"]) == (124.0, None)
    assert (whole.censored, set(whole.with_censored.values())) == (50, {None})
    assert "p90" in first.thin
    assert "p50" not in first.thin


def test_requests_that_never_got_a_slot_have_waited_from_due(measured, unsent):
    found = measured("request_latency_from_due", unsent(due=0), unsent(due=400), rate=10, cap=1)
    assert (found.reason, found.censored) == ("no request succeeded.", 2)
    assert found.with_censored_least == 1000.0


def test_what_only_failed_has_no_curve(measured, answer):
    found = measured("request_latency", answer(5, outcome="reset"), answer(9, outcome="http-error"))
    assert (found.reason, found.with_censored) == ("no request succeeded.", None)


@pytest.mark.parametrize("name", ["time_to_second_token", "output_sequence_length", "inter_token_latency"])
def test_what_is_not_broken_off_needs_a_success(name, measured, cut):
    found = measured(name, cut(5, 6, done=9))
    assert (found.reason, found.with_censored) == ("no request succeeded.", None)
