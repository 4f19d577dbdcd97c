"""Concurrency, throughput and contexts over time, on runs small enough to be worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadstone.metrics import all_metrics
from loadstone.metrics._flow import _exact, _in_steps
from loadstone.stats import summarise

STAGES = [name for name in all_metrics() if name.startswith(("effective_", "active_"))]


@pytest.fixture
def over_time(result):
    """The distribution of one metric over time."""
    return lambda name, tables: summarise(result(name, tables).values)


@pytest.fixture
def two(tables, answer):
    """Two answers: prefills from 0 to 40 and from 20 to 80 ms, decodes from 40 to 60 and from 80 to 100 ms."""
    first = answer(40, 50, 60, sent=0, input_tokens=400)
    second = answer(80, 100, sent=20, input_tokens=120)
    return tables(first, second)


@pytest.mark.parametrize(
    ("name", "mean", "least", "most"),
    [
        ("concurrency", (60 + 80) / 100, 1, 2),
        ("active_concurrency", 1.4, 1, 2),
        ("effective_prefill_concurrency", (40 + 60) / 100, 0, 2),
        ("active_prefill_concurrency", 100 / 80, 1, 2),
        ("effective_decode_concurrency", (20 + 20) / 100, 0, 1),
        ("active_decode_concurrency", 1.0, 1, 1),
        ("effective_prefill_throughput", 5200.0, 0, 12_000),  # 400 / 40 ms and 120 / 60 ms
        ("active_prefill_throughput", 6500.0, 2000, 12_000),
        ("effective_prefill_throughput_per_user", (20 * 10e3 + 20 * 6e3 + 40 * 2e3) / 80, 2000, 10_000),
        ("effective_decode_throughput", 50.0, 0, 200),  # at 40 and at 50 ms one token in 10 ms, or two
        ("active_decode_throughput", 5 / 0.04, 50, 200),
        ("effective_decode_throughput_per_user", 75.0, 50, 100),  # a token in 10 ms, then one in 20 ms
        ("effective_total_throughput", 5250.0, 50, 12_000),
        ("active_total_throughput", 5250.0, 50, 12_000),
        ("tokens_in_flight", (400 * 60 + 120 * 80 + 1 * 20 + 1 * 10 + 1 * 20) / 100, 120, 522),
        ("peak_concurrency", 2.0, 2, 2),
    ],
)
def test_two_answers(name, mean, least, most, two, result):
    found = result(name, two)
    if hasattr(found, "value"):
        assert found.value == mean
        return
    levels = summarise(found.values)
    assert levels.mean == pytest.approx(mean)
    assert least <= levels.min + 1e-6
    assert levels.max <= most + 1e-6
    assert levels.max == pytest.approx(most) or name == "effective_decode_throughput"


def test_a_total_per_user_leaves_first_tokens_out(two, over_time):
    # Alone 10,000; both 12,000 / 2; then 2,000 + 100 shared by two; alone 2,000; alone 50.
    steps = [10e3] * 2 + [6e3] * 2 + [(2e3 + 100) / 2] * 2 + [2e3] * 2 + [50] * 2
    assert over_time("effective_total_throughput_per_user", two).mean == pytest.approx(np.mean(steps))


def test_chunks_right_behind_each_other_make_no_mountain(tables, answer, over_time):
    rows = answer(10, 100, 100.001, 200, sent=0, tokens=4)
    levels = over_time("effective_decode_throughput", tables(rows))
    assert levels.mean == pytest.approx(4 / 0.2)
    assert levels.max <= 1000 / 10 + 1000 / 90 + 1e-6


def test_a_chunk_brings_as_many_tokens_as_the_server_tells(tables, answer, mean):
    run = tables(answer(10, 20, 40, sent=0, tokens=13, counts=[1, 4, 8]))
    assert mean("effective_decode_throughput", run) == pytest.approx(13 / 0.04)
    # 12 tokens in 30 ms, at 400 tokens/s throughout.
    assert mean("effective_decode_throughput_per_user", run) == pytest.approx(400.0)
    assert mean("tokens_in_flight", run) == pytest.approx(10 + (1 * 30 + 4 * 20) / 40)


def test_choices_decode_side_by_side_and_hold_their_tokens_to_the_end_of_the_request(tables, answer, mean):
    row = answer(10, 20, 30, 40, sent=0, tokens=4, choices=2)
    run = tables(row | {"chunk_choice": [0, 1, 0, 1]})
    assert mean("effective_decode_throughput", run) == pytest.approx(4 / 0.04)
    assert mean("tokens_in_flight", run) == pytest.approx(10 + (30 + 20 + 10) / 40)


def test_a_request_without_a_token_waits_for_it_until_it_ends(tables, answer, mean):
    run = tables(answer(100, sent=0), answer(sent=50, done=100, outcome="http-error"))
    assert mean("effective_prefill_concurrency", run) == pytest.approx(1.5)
    assert mean("effective_prefill_throughput", run) == pytest.approx(10 / 0.1)


def test_an_unknown_prompt_is_left_out_and_counted(tables, answer, result, reason):
    unknown = answer(100, sent=0, input_tokens=None)
    found = result("effective_prefill_throughput", tables(answer(100, sent=0), unknown))
    assert summarise(found.values).mean == pytest.approx(100.0)
    assert found.note == "1 answer whose tokens are not known left out."
    for name in ("effective_prefill_throughput", "effective_total_throughput", "tokens_in_flight"):
        assert reason(name, tables(unknown)) == "the length of no prompt is known."


def test_idle_time_counts_in_effective_and_not_in_active(tables, answer, mean):
    run = tables(answer(50, 100, sent=0), answer(950, 1000, sent=900))
    assert mean("concurrency", run) == pytest.approx(0.2)
    assert mean("active_concurrency", run) == 1.0
    assert mean("effective_prefill_throughput", run) == pytest.approx(20.0)
    assert mean("active_prefill_throughput", run) == pytest.approx(200.0)
    assert mean("effective_total_throughput", run) == pytest.approx(24.0)
    assert mean("active_total_throughput", run) == pytest.approx(24 / 0.2)


def test_answers_of_one_instant_decode_never(tables, answer, reason, mean):
    run = tables(answer(50, sent=0), answer(90, sent=0))
    assert reason("active_decode_concurrency", run) == "no request was ever in this stage."
    assert reason("effective_decode_throughput_per_user", run) == "no request was ever in this stage."
    assert mean("effective_decode_throughput", run) == pytest.approx(2 / 0.09)


def test_time_between_two_stretches_counts_nowhere(tables, answer, phase_log, mean):
    logs = [phase_log("a", 0, 100), phase_log("b", 500, 600)]
    load = {"phases": ({"name": "a", "concurrency": 1}, {"name": "b", "concurrency": 1})}
    rows = [answer(50, 100, sent=0, phase="a"), answer(550, 600, sent=500, phase="b")]
    run = tables(*rows, phases=logs, load=load)
    assert mean("effective_decode_throughput", run) == pytest.approx(4 / 0.2)
    assert mean("effective_prefill_concurrency", run) == pytest.approx(0.5)
    assert mean("peak_concurrency", run) == 1.0


def test_one_that_ends_as_another_is_sent_makes_no_peak(tables, answer, mean):
    assert mean("peak_concurrency", tables(answer(10, sent=0), answer(20, sent=10))) == 1.0


def test_the_peak_is_the_most_in_any_second(tables, answer, mean, reason):
    # 0.6 to 1.5 s holds ten tokens; no second of the clock holds more than six.
    burst = answer(*range(600, 1501, 100), sent=0)
    run = tables(burst, answer(10, 2500, sent=0))
    assert mean("peak_output_token_throughput", run) == 10.0
    assert reason("peak_output_token_throughput", tables(answer(10, 999, sent=0))) == (
        "the window is shorter than a second."
    )


def test_two_tokens_a_second_apart_are_not_within_one(tables, answer, mean):
    assert mean("peak_output_token_throughput", tables(answer(100, 1100, 1600, sent=0))) == 2.0


@given(st.lists(st.tuples(st.integers(0, 5_000), st.integers(1, 9)), min_size=1, max_size=80))
def test_counted_in_steps_the_peak_lies_between_its_bounds(instants):
    moments, tokens = (np.array(column, np.int64) for column in zip(*instants, strict=True))
    sums = np.bincount(moments // 10, tokens, minlength=600)
    exact = _exact(moments * 1_000_000, tokens.astype(float))
    found = _in_steps(sums, 10_000_000)
    assert found.tokens <= exact.tokens <= found.at_most
    brute = max(tokens[(moments > at - 1000) & (moments <= at)].sum() for at in moments)
    assert exact.tokens == brute


def test_without_streaming_there_are_no_stages(tables, answer, reason):
    run = tables(answer(100, sent=0), streaming=False)
    for name in (*STAGES, "tokens_in_flight"):
        if name != "active_concurrency":
            assert "it needs a stream" in reason(name, run)
