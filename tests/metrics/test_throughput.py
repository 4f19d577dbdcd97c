from __future__ import annotations

import pytest
from tests.conftest import ns

from loadstone.folder import PhaseLog


def test_rates_count_successes_over_first_send_to_last_event(tables, answer, mean):
    rows = [
        answer(150, 200, sent=100, tokens=20),
        answer(300, 400, sent=100, tokens=30),
        answer(500, 1100, sent=200, outcome="truncated", tokens=7),
    ]
    run = tables(*rows)  # 1 s from the first send to the failed request's last event
    assert mean("request_throughput", run) == 2.0
    assert mean("output_token_throughput", run) == 50.0
    assert mean("input_token_throughput", run) == 20.0
    assert mean("total_token_throughput", run) == 70.0
    assert mean("failed_output_tokens", run) == 7.0


def test_no_failure_lost_no_token(tables, answer, mean):
    assert mean("failed_output_tokens", tables(answer(5))) == 0.0


def test_output_that_nobody_counted_is_not_taken_for_none(tables, answer, result, reason):
    unknown = answer(outcome="reset", text_chars=40) | {"output_tokens": None}
    nothing = answer(outcome="reset", text_chars=0) | {"output_tokens": None}
    assert reason("failed_output_tokens", tables(answer(5), unknown, nothing)) == (
        "output came for 1 failed request, and nobody counted it."
    )
    found = result("failed_output_tokens", tables(unknown, nothing, answer(5, tokens=7, outcome="reset")))
    assert (found.value, found.note) == (7.0, "1 answer whose tokens are not known left out.")
    assert result("failed_output_tokens", tables(nothing)).value == 0.0


def test_speed_for_one_user_is_one_over_the_mean_gap(tables, answer, result):
    run = tables(answer(50, 60, 70), answer(50, 90, tokens=5, counts=[1, 4]), answer(4))
    assert result("output_token_throughput_per_user", run).values.tolist() == [100.0, 100.0]


def test_answers_of_unknown_length_are_left_out_and_said(tables, answer, result, reason):
    unknown = answer(500, 1000) | {"output_tokens": None}
    found = result("output_token_throughput", tables(answer(50, tokens=4), unknown))
    assert found.value == 4.0
    assert found.note == "1 answer whose tokens are not known left out."
    assert "not known" in reason("output_token_throughput", tables(unknown))


@pytest.mark.parametrize("name", ["request_throughput", "output_token_throughput", "total_token_throughput"])
def test_without_a_success_there_is_no_throughput(name, tables, answer, unsent, reason):
    assert reason(name, tables(answer(9, outcome="reset"))) == "no request succeeded."
    assert reason(name, tables(unsent())) == "no request succeeded."


def test_a_window_without_length_has_no_rate(tables, answer, reason):
    assert "no time passed" in reason("request_throughput", tables(answer(0, sent=0)))


@pytest.mark.parametrize(
    "outcome",
    ["cut", "cancelled", "timeout-connect", "timeout-first-token", "timeout-idle", "timeout-total", "too-large",
     "client-fault"],
)  # fmt: skip
def test_what_the_client_ended_is_no_event_of_the_server(outcome, tables, answer, mean):
    run = tables(answer(400, 500, sent=0), answer(900, 1000, sent=0, done=300_000, outcome=outcome))
    assert mean("request_throughput", run) == 1.0
    run = tables(answer(400, 500, sent=0), answer(sent=0, done=300_000, outcome=outcome))
    assert mean("request_throughput", run) == 2.0
    assert mean("benchmark_duration", run) == 0.5


def test_under_load_tokens_count_by_their_own_moment_whatever_became_of_the_request(
    tables, answer, result, mean
):
    rows = [
        answer(200, 300, sent=0, tokens=20),
        answer(700, 800, 1100, 1200, sent=100, tokens=40),  # half of it in the drain
        answer(500, 600, sent=200, tokens=5, outcome="reset"),
        answer(900, sent=300, done=5000, tokens=3, outcome="cut"),
        answer(sent=1000, done=2000, tokens=50, streamed=False),  # whole, in the drain
    ]
    assert mean("output_token_throughput_under_load", tables(*rows)) == 20 + 20 + 5 + 3


def test_what_was_sent_at_once_has_no_throughput_under_load(tables, answer, reason):
    assert "stretch of time" in reason("output_token_throughput_under_load", tables(answer(5), answer(9)))


def test_under_load_unknown_lengths_are_left_out_and_said(tables, answer, result):
    unknown = answer(500, sent=0) | {"output_tokens": None}
    known = answer(600, sent=500), answer(1200, sent=1000)
    found = result("output_token_throughput_under_load", tables(unknown, *known))
    assert (found.value, found.note) == (1.0, "1 answer whose tokens are not known left out.")


def test_under_load_unknown_lengths_of_failures_are_said_as_well(tables, answer, result, reason):
    unknown = answer(500, sent=0, outcome="reset") | {"output_tokens": None}
    nothing = answer(sent=0, done=20, outcome="http-server-error") | {"output_tokens": None}
    known = answer(600, sent=500), answer(1200, sent=1000)
    found = result("output_token_throughput_under_load", tables(unknown, nothing, *known))
    assert (found.value, found.note) == (1.0, "1 answer whose tokens are not known left out.")
    assert "not known" in reason("output_token_throughput_under_load", tables(unknown, known[1]))


def test_before_output_could_come_there_is_no_throughput_under_load(tables, answer, reason, mean):
    at_once = [answer(50 + k, 60 + k, sent=k / 10) for k in range(8)]
    assert reason("output_token_throughput_under_load", tables(*at_once)) == (
        "all requests were sent within 0.7 ms, before output could come."
    )
    cut = [answer(sent=k / 10, done=9000, outcome="cut") for k in range(8)]
    assert "before output could come" in reason("output_token_throughput_under_load", tables(*cut))
    slow = answer(900, sent=0), answer(550, sent=500)  # 50 ms would have been time enough
    assert mean("output_token_throughput_under_load", tables(*slow)) == 0.0
    refused = [answer(sent=k, done=k + 1, outcome="http-server-error") for k in range(8)]
    assert mean("output_token_throughput_under_load", tables(*refused)) == 0.0


def test_under_load_time_between_two_phases_is_no_load(tables, answer, mean):
    phases = [
        PhaseLog(
            name=name, kind="measured", first_row=0, planned=2, start_ns=ns(start), stop_ns=ns(start + 100),
            end_ns=ns(start + 150),
        )
        for name, start in (("low", 0), ("high", 5000))
    ]  # fmt: skip
    rows = [answer(50, sent=0, phase="low"), answer(150, sent=100, phase="low")]
    rows += [answer(5060, sent=5000, phase="high"), answer(5150, sent=5100, phase="high")]
    run = tables(*rows, phases=phases)
    assert mean("output_token_throughput_under_load", run) == pytest.approx(2 / 0.2)


def test_the_speed_of_a_whole_answer_is_one_over_its_normalized_latency(tables, answer, result):
    run = tables(answer(50, 60, 80, sent=20, tokens=6), answer(sent=5, tokens=3))
    assert result("e2e_output_token_throughput", run).values.tolist() == [100.0]
    assert result("normalized_latency", run).values.tolist() == [10.0]


def test_a_prompt_is_taken_in_until_the_first_token(tables, answer, result, reason):
    run = tables(answer(50, 60, sent=10, input_tokens=200), answer(9, 9, coalesced=True))
    assert result("prefill_throughput_per_user", run).values.tolist() == [5000.0]
    unknown = tables(answer(50) | {"input_tokens": None})
    assert "length is known" in reason("prefill_throughput_per_user", unknown)
