from __future__ import annotations

import pytest


def test_lengths_are_of_successes(tables, answer, result):
    run = tables(answer(5, tokens=7, input_tokens=11), answer(5, tokens=99, outcome="reset"))
    assert result("input_sequence_length", run).values.tolist() == [11.0]
    assert result("output_sequence_length", run).values.tolist() == [7.0]


def test_reasoning_is_taken_off_where_it_is_told(tables, answer, result):
    run = tables(answer(5, tokens=100, usage_reasoning_tokens=60), answer(5, tokens=4))
    assert result("output_token_count", run).values.tolist() == [40.0]
    assert result("reasoning_token_count", run).values.tolist() == [60.0]


def test_no_answer_has_fewer_than_no_tokens(tables, answer, result, reason):
    wrong = answer(5, tokens=4, usage_reasoning_tokens=60)
    found = result("output_token_count", tables(wrong, answer(5, tokens=9, usage_reasoning_tokens=9)))
    assert found.values.tolist() == [0.0]
    assert found.note == "1 answer with more reasoning tokens than tokens in all, by usage, left out."
    assert reason("output_token_count", tables(wrong)) == (
        "the server counts more reasoning tokens than tokens in all."
    )


@pytest.mark.parametrize("name", ["output_token_count", "reasoning_token_count"])
def test_reasoning_that_is_not_told_is_missing(name, tables, answer, reason):
    assert "does not tell" in reason(name, tables(answer(5)))


def test_mismatch_is_signed_and_relative_to_what_was_asked(tables, answer, result, reason):
    run = tables(answer(5, tokens=96, planned_output_tokens=128), answer(5, tokens=3))
    assert result("output_length_mismatch", run).values.tolist() == [-25.0]
    assert reason("output_length_mismatch", tables(answer(5))) == "no output length was asked for."


def test_usage_is_held_against_our_count_of_the_same_answers(tables, answer, result):
    run = tables(
        answer(5, usage_completion_tokens=30, checked_output_tokens=20),
        answer(5, usage_completion_tokens=30, checked_output_tokens=20),
        answer(5, usage_completion_tokens=1000),
        answer(5, checked_output_tokens=1000),
        answer(5, usage_completion_tokens=1000, checked_output_tokens=1, outcome="truncated"),
    )
    found = result("usage_token_mismatch", run)
    assert found.value == 50.0
    assert found.note == "2 answers counted: 60 tokens by the server's usage, 40 by our tokenizer."


def test_usage_without_a_sample_is_not_judged(tables, answer, reason):
    assert "--check-tokens" in reason("usage_token_mismatch", tables(answer(5, usage_completion_tokens=3)))


def test_totals_are_of_the_answers_alone(tables, answer, result, reason):
    rows = (
        answer(5, tokens=7, usage_reasoning_tokens=3),
        answer(6, tokens=9),
        answer(5, tokens=8, outcome="reset"),
    )
    run = tables(*rows)
    assert [result(f"total_{kind}_tokens", run).value for kind in ("input", "output")] == [20.0, 16.0]
    reasoned = result("total_reasoning_tokens", run)
    assert (reasoned.value, reasoned.note) == (3.0, "1 answer whose tokens are not known left out.")
    assert "does not tell" in reason("total_reasoning_tokens", tables(rows[1]))
