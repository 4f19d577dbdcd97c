from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadstone.sim.tally import SECOND_NS, Histogram, Tally, one_two_five


def test_a_value_on_a_bound_belongs_to_it() -> None:
    histogram = Histogram((0.01, 0.1), SECOND_NS)
    for value_ns in (10_000_000, 10_000_001, 100_000_000, 100_000_001):
        histogram.observe(value_ns)
    histogram.observe(5, times=3)
    assert histogram.counts == [4, 2, 1]
    assert (histogram.count, histogram.sum) == (7, 220_000_017)


@given(st.lists(st.integers(0, 10**15), max_size=50))
def test_every_value_is_in_one_place(values: list[int]) -> None:
    histogram = Histogram((0.5, 1, 2.5), SECOND_NS)
    for value in values:
        histogram.observe(value)
    assert (histogram.count, histogram.sum) == (len(values), sum(values))
    assert histogram.counts[-1] == sum(value > 2.5 * SECOND_NS for value in values)


@pytest.mark.parametrize(
    ("longest", "bounds"),
    [
        (0, []),
        (1, [1]),
        (9, [1, 2, 5]),
        (100, [1, 2, 5, 10, 20, 50, 100]),
        (250, [1, 2, 5, 10, 20, 50, 100, 200]),
    ],
)
def test_bounds_of_tokens_go_up_to_the_longest(longest: int, bounds: list[int]) -> None:
    assert one_two_five(longest) == bounds


def test_a_request_from_its_first_token_to_its_last() -> None:
    tally = Tally(1000)
    tally.taken_in(prompt_tokens=40, cached_tokens=32)
    tally.stepped(prompt_tokens=40, tokens=1, gaps_ns={})
    tally.stepped(prompt_tokens=0, tokens=2, gaps_ns={10_000_000: 2})
    tally.done(
        "length", latency_ns=50_000_000, queue_ns=5, prefill_ns=20, decode_ns=21, prompt_tokens=40,
        cached_tokens=32, tokens=3, limit_tokens=3,
    )  # fmt: skip
    assert (tally.prompt_tokens, tally.cached_tokens, tally.generation_tokens) == (40, 32, 3)
    assert (tally.inter_token.sum, tally.inter_token.count) == (20_000_000, 2)
    assert (tally.queue.sum, tally.prefill.sum, tally.decode.sum, tally.inference.sum) == (5, 20, 21, 41)
    assert tally.per_output_token.sum == 10  # 21 ns over the two tokens after the first, to the nearest even
    assert (tally.request_prompt.sum, tally.request_computed.sum, tally.request_generation.sum) == (40, 8, 3)
    assert (tally.step_tokens.counts[0], tally.step_tokens.sum) == (0, 43)
    assert tally.ended == {"stop": 0, "length": 1, "abort": 0, "error": 0, "repetition": 0}


def test_an_answer_of_one_token_has_no_time_for_each_further_one() -> None:
    tally = Tally(10)
    tally.done(
        "stop", latency_ns=9, queue_ns=1, prefill_ns=8, decode_ns=0, prompt_tokens=4, cached_tokens=0, tokens=1,
        limit_tokens=2,
    )  # fmt: skip
    assert (tally.per_output_token.count, tally.per_output_token.sum) == (1, 0)


def test_what_generates_nothing_is_counted_without_tokens() -> None:
    tally = Tally(10)
    tally.done(
        "stop", latency_ns=9, queue_ns=1, prefill_ns=8, decode_ns=0, prompt_tokens=4, cached_tokens=0, tokens=None,
        limit_tokens=1,
    )  # fmt: skip
    assert (tally.per_output_token.count, tally.request_generation.count, tally.request_generation.sum) == (
        0,
        1,
        0,
    )
    assert tally.latency.count == 1


def test_a_reason_that_the_engine_does_not_know_counts_as_stop() -> None:
    tally = Tally(10)
    tally.end("tool_calls")
    assert tally.ended["stop"] == 1


def test_who_left_is_an_abort_and_in_no_histogram() -> None:
    tally = Tally(10)
    tally.left()
    assert (tally.ended["abort"], tally.latency.count) == (1, 0)


def test_accepted_drafts_by_position() -> None:
    tally = Tally(10, draft_tokens=3)
    for accepted in (0, 1, 3):
        tally.drafted(accepted)
    assert (tally.drafts, tally.accepted) == (3, [2, 1, 1])
