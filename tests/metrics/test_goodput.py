from __future__ import annotations

import pytest

from loadstone.errors import UsageError
from loadstone.metrics import names, objectives, per_request


@pytest.fixture
def rows(answer, unsent):
    """Over 1 s: fast, slow to begin, slow to go on, failed, and never sent."""
    return [
        answer(100, 110, 120, sent=0, tokens=3),
        answer(900, 910, 920, sent=0, tokens=3),
        answer(100, 550, 1000, sent=0, tokens=3),
        answer(10, 20, sent=0, outcome="reset"),
        unsent(),
    ]


def test_a_request_must_meet_every_objective(tables, rows, mean):
    run = tables(*rows, goodput={"time_to_first_token": 100, "inter_token_latency": 10})
    assert mean("goodput", run) == 1.0
    assert mean("token_goodput", run) == 3.0
    assert mean("goodput_attainment", run) == 25.0


def test_good_answers_of_unknown_length_are_left_out_and_said(tables, answer, result, reason):
    unknown = answer(1000, sent=0) | {"output_tokens": None}
    goal = {"time_to_first_token": 2000}
    found = result("token_goodput", tables(unknown, answer(5, sent=0, tokens=3), goodput=goal))
    assert (found.value, found.note) == (3.0, "1 answer whose tokens are not known left out.")
    assert "not known" in reason("token_goodput", tables(unknown, goodput=goal))
    assert result("token_goodput", tables(unknown, goodput={"time_to_first_token": 1})).value == 0.0


def test_a_limit_itself_is_met(tables, rows, mean):
    assert mean("goodput", tables(*rows, goodput={"time_to_first_token": 900})) == 3.0
    assert mean("goodput", tables(*rows, goodput={"time_to_first_token": 899.999})) == 2.0


def test_where_higher_is_better_the_limit_is_the_least(tables, rows, mean):
    assert mean("goodput", tables(*rows, goodput={"output_token_throughput_per_user": 100})) == 2.0


def test_a_metric_that_a_request_lacks_is_not_met(tables, answer, mean):
    one_token = answer(1000, sent=0)
    assert mean("goodput_attainment", tables(one_token, goodput={"inter_token_latency": 1e9})) == 0.0
    unstreamed = tables(answer(sent=0, done=5), streaming=False, goodput={"time_to_first_token": 1e9})
    assert mean("goodput_attainment", unstreamed) == 0.0


def test_an_answer_in_one_read_brought_its_first_token_by_then(tables, answer, mean):
    run = tables(answer(200, 200, 200, sent=0, coalesced=True), goodput={"time_to_first_token": 200})
    assert mean("goodput_attainment", run) == 100.0
    run = tables(answer(200, 200, 200, sent=0, coalesced=True), goodput={"time_to_first_token": 199})
    assert mean("goodput_attainment", run) == 0.0
    unknown = {"output_token_throughput_per_user": 1}
    run = tables(answer(200, 200, 200, sent=0, coalesced=True), goodput=unknown)
    assert mean("goodput_attainment", run) == 0.0


def test_without_an_objective_goodput_is_missing(tables, rows, reason):
    for name in ("goodput", "token_goodput", "goodput_attainment"):
        assert "no limit for a request was set (--slo METRIC<LIMIT" in reason(name, tables(*rows))


def test_what_was_cancelled_as_asked_could_not_meet_an_objective(tables, rows, answer, result, reason):
    asked = [answer(10, sent=0, outcome="cancelled-as-planned") for _ in range(2)]
    goal = {"time_to_first_token": 100}
    found = result("goodput_attainment", tables(*rows, *asked, answer(9, outcome="cut"), goodput=goal))
    assert (found.value, found.note) == (40.0, "2 requests cancelled as asked left out.")
    assert result("goodput_attainment", tables(*rows, goodput=goal)).note is None
    assert (
        reason("goodput_attainment", tables(*asked, goodput=goal)) == "every request was cancelled as asked."
    )


def test_a_run_of_failures_attains_nothing(tables, answer, mean):
    run = tables(answer(9, outcome="reset"), goodput={"request_latency": 1})
    assert (mean("goodput", run), mean("goodput_attainment", run)) == (0.0, 0.0)


def test_objectives_are_metrics_of_one_request_that_have_a_direction():
    assert set(objectives()) < set(names())
    assert {"time_to_first_token", "inter_token_latency", "request_latency"} < set(objectives())
    assert not {"goodput", "client_lag", "input_sequence_length", "concurrency"} & set(objectives())


@pytest.mark.parametrize("name", ["request_throughput", "no_such_metric"])
def test_what_is_no_metric_of_one_request_is_refused(name, tables, answer):
    with pytest.raises(
        UsageError, match=f"{name} has no value for a single request; use one of time_to_first_token"
    ):
        per_request(name, tables(answer(5)))


def test_good_requests_are_counted(tables, rows, mean, reason):
    assert mean("good_request_count", tables(*rows, goodput={"time_to_first_token": 100})) == 2.0
    assert "--goodput" in reason("good_request_count", tables(*rows))


def test_answers_that_miss_only_for_want_of_the_metric_are_counted(tables, answer, result):
    one_token, slow, failed = answer(10, sent=0), answer(10, 500, sent=0), answer(10, sent=0, outcome="reset")
    goal = {"time_per_output_token": 40, "time_to_first_token": 100}
    found = result(
        "goodput_attainment", tables(one_token, slow, failed, answer(10, 20, sent=0), goodput=goal)
    )
    assert found.value == 25.0
    assert found.note == (
        "1 of 2 answers that missed have no time per output token (one token, or all in one read) and kept every other limit."
    )
    late = answer(200, sent=0)
    assert result("goodput_attainment", tables(late, slow, goodput=goal)).note is None
