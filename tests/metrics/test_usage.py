from __future__ import annotations

import math

import pytest

from loadstone.folder import PreflightLog


def preflight(content, told, target=0):
    return PreflightLog(
        request_id="p",
        http_status=200,
        latency_ms=1,
        content_tokens=content,
        prompt_tokens=told,
        target=target,
    )


def test_usage_is_the_servers_word_alone(tables, answer, result):
    told = answer(5, usage_prompt_tokens=11, usage_completion_tokens=7, input_tokens=11)
    half = answer(5, usage_prompt_tokens=13, input_tokens=13, tokens=5)
    run = tables(told, half, answer(5, tokens=9, input_tokens=99))
    values = {
        name: result(f"usage_{name}_tokens", run).values.tolist()
        for name in ("prompt", "completion", "total")
    }
    assert values == {"prompt": [11.0, 13.0], "completion": [7.0], "total": [18.0]}


@pytest.mark.parametrize(
    "name",
    [
        "usage_prompt_tokens", "usage_completion_tokens", "usage_total_tokens", "usage_prompt_cache_read_tokens",
        "usage_prompt_cache_read_share", "usage_accepted_prediction_tokens", "usage_rejected_prediction_tokens",
        "reasoning_share", "usage_completion_tokens_diff_pct", "usage_discrepancy_count", "input_length_mismatch",
        "output_length_mismatch_count", "acceptance_length", "acceptance_length_pooled", "draft_acceptance_rate",
        "draft_acceptance_rate_pooled", "items_throughput", "latency_per_item", "rtfx", "audio_throughput",
    ],
)  # fmt: skip
def test_what_the_server_does_not_tell_is_missing_with_a_reason(name, tables, answer, reason):
    assert reason(name, tables(answer(5, tokens=None)))


def test_the_share_read_from_the_cache_is_pooled_and_leaves_out_what_cannot_be(tables, answer, result):
    rows = [
        answer(5, usage_prompt_tokens=100, usage_cached_tokens=50),
        answer(5, usage_prompt_tokens=300, usage_cached_tokens=0),
        answer(5, usage_prompt_tokens=10, usage_cached_tokens=11),
        answer(5, usage_prompt_tokens=500),
    ]
    found = result("usage_prompt_cache_read_share", tables(*rows))
    assert found.value == 12.5
    assert found.note == "2 answers that did not tell both left out."
    assert result("usage_prompt_cache_read_tokens", tables(*rows)).values.tolist() == [50.0, 0.0, 11.0]


def test_predicted_output(tables, answer, result):
    run = tables(answer(5, usage_accepted_prediction_tokens=8, usage_rejected_prediction_tokens=2))
    assert result("usage_accepted_prediction_tokens", run).values.tolist() == [8.0]
    assert result("usage_rejected_prediction_tokens", run).values.tolist() == [2.0]


def test_the_share_of_reasoning(tables, answer, result):
    run = tables(
        answer(5, usage_completion_tokens=80, usage_reasoning_tokens=60),
        answer(5, usage_completion_tokens=10, usage_reasoning_tokens=0),
        answer(5, usage_completion_tokens=10, usage_reasoning_tokens=11),
    )
    assert result("reasoning_share", run).values.tolist() == [75.0, 0.0]


def test_counts_of_an_answer_apart(tables, answer, result):
    run = tables(
        answer(5, usage_completion_tokens=22, checked_output_tokens=20),
        answer(5, usage_completion_tokens=15, checked_output_tokens=20),
        answer(5, usage_completion_tokens=15),
    )
    assert result("usage_completion_tokens_diff_pct", run).values.tolist() == [10.0, -25.0]


def test_a_prompt_is_held_against_what_was_asked_and_the_template(tables, answer, result):
    turns = [
        answer(5, planned_input_tokens=100, usage_prompt_tokens=110, target=0, conversation=0, turn=0),
        answer(5, planned_input_tokens=200, usage_prompt_tokens=260, target=1, conversation=1, turn=0),
        answer(5, planned_input_tokens=900, usage_prompt_tokens=990, target=1, conversation=1, turn=1),
    ]
    run = tables(*turns, preflights=[preflight(4, 14), preflight(4, 44, target=1)])
    assert result("input_length_mismatch", run).values.tolist() == [0.0, 10.0]


def test_without_a_known_template_a_prompt_is_held_against_nothing(tables, answer, reason):
    row = answer(5, planned_input_tokens=100, usage_prompt_tokens=110, conversation=0, turn=0)
    for logs in ([], [preflight(4, None)], [preflight(4, 14), preflight(4, 15)]):
        assert "template" in reason("input_length_mismatch", tables(row, preflights=logs))


def test_discrepancies_are_counted_once_a_request(tables, answer, result):
    asked = {"planned_input_tokens": 100, "turn": 0}
    rows = [
        answer(
            5,
            usage_prompt_tokens=130,
            usage_completion_tokens=50,
            checked_output_tokens=20,
            conversation=0,
            **asked,
        ),
        answer(
            5,
            usage_prompt_tokens=120,
            usage_completion_tokens=22,
            checked_output_tokens=20,
            conversation=1,
            **asked,
        ),
        answer(5, usage_prompt_tokens=121, conversation=2, **asked),
        answer(5),
    ]
    found = result("usage_discrepancy_count", tables(*rows, preflights=[preflight(10, 20)]))
    assert (found.value, found.note) == (2.0, "Of 3 requests that were counted twice.")


def test_answers_off_the_length_asked_for(tables, answer, mean):
    lengths = [(100, 95), (100, 94), (2000, 2050), (2000, 2051), (10, 10), (10, 11)]
    run = tables(*(answer(5, planned_output_tokens=asked, tokens=came) for asked, came in lengths))
    assert mean("output_length_mismatch_count", run) == 3.0


def test_what_drafts_came_to_by_request_and_pooled(tables, answer, result, mean):
    run = tables(
        answer(5, draft_steps=10, draft_tokens=30, draft_accepted_tokens=15),
        answer(5, draft_steps=30, draft_tokens=90, draft_accepted_tokens=9),
        answer(5, draft_tokens=8, draft_accepted_tokens=4),
        answer(5, draft_steps=9, draft_tokens=9, draft_accepted_tokens=9, outcome="reset"),
        answer(5),
    )
    assert result("acceptance_length", run).values.tolist() == [2.5, 1.3]
    assert mean("acceptance_length_pooled", run) == pytest.approx(1.6)
    assert result("draft_acceptance_rate", run).values.tolist() == [50.0, 10.0, 50.0]
    assert mean("draft_acceptance_rate_pooled", run) == pytest.approx(100 * 28 / 128)


def test_items_and_sound(tables, answer, result, mean):
    run = tables(
        answer(sent=0, done=100, items=4, audio_s=2.0),
        answer(sent=100, done=500, items=1, audio_s=6.0),
        answer(sent=100, done=200, items=9, outcome="reset"),
        streaming=False,
    )
    assert mean("items_throughput", run) == pytest.approx(10.0)
    assert result("latency_per_item", run).values.tolist() == [25.0, 400.0]
    assert result("rtfx", run).values.tolist() == pytest.approx([20.0, 15.0])
    assert mean("audio_throughput", run) == pytest.approx(16.0)
    assert not math.isnan(mean("request_latency", run))
