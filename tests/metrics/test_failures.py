from __future__ import annotations

import pytest


def test_failures_are_counted_and_what_we_ended_is_none(tables, answer, unsent, mean):
    run = tables(
        answer(5), answer(outcome="reset"), answer(outcome="timeout-total"), answer(outcome="cut"), unsent()
    )
    assert mean("error_request_count", run) == 2.0
    assert mean("error_rate", run) == pytest.approx(200 / 3)


@pytest.mark.parametrize(
    "fault",
    [
        "HTTP 400: This model's maximum context length is 4096 tokens. However, you requested 5000 tokens.",
        "HTTP 400: The input (61709 tokens) is longer than the model's context length (40960 tokens).",
        "HTTP 400: Input length (160062 tokens) exceeds the maximum allowed length (59862 tokens).",
        "HTTP 400: the request exceeds the available context size, try increasing it",
        "HTTP 400: {'code': 'context_length_exceeded'}",
        "HTTP 400: prompt is too long: 208310 tokens > 200000 maximum",
        "HTTP 422: `inputs` tokens + `max_new_tokens` must be <= 2048. Given: 3000",
        "HTTP 400: prompt length exceeds max_input_len of 8192",
    ],
)
def test_words_for_a_prompt_that_does_not_fit(fault, tables, answer, mean):
    rows = (
        answer(5),
        answer(outcome="http-invalid", fault=fault),
        answer(outcome="reset", fault="the connection was reset"),
    )
    assert mean("context_overflow_count", tables(*rows)) == 1.0


def test_an_answer_that_speaks_of_the_context_is_none(tables, answer, mean):
    run = tables(answer(5, fault="context length"), answer(outcome="cut", fault="context length"))
    assert mean("context_overflow_count", run) == 0.0


def test_a_failure_without_words_does_not_count(tables, answer, mean):
    assert mean("context_overflow_count", tables(answer(outcome="reset"))) == 0.0


def test_the_prompts_of_failures_alone(tables, answer, result, reason):
    run = tables(answer(5), answer(outcome="reset", input_tokens=700), answer(outcome="cut", input_tokens=9))
    assert result("failed_input_sequence_length", run).values.tolist() == [700.0]
    unknown = tables(answer(5), answer(outcome="reset") | {"input_tokens": None})
    assert reason("failed_input_sequence_length", unknown) == "the length of no failed prompt is known."
