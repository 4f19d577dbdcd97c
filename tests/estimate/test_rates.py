"""Intervals of rates: by sends or by times in flight, and by the drain."""

from __future__ import annotations

from heapq import heapreplace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadstone.estimate import rates

TIMES = st.lists(st.integers(1, 100).map(float), min_size=20, max_size=200).map(np.array)


def loop(times, slots):
    """Requests of these times in a closed loop: when each was sent, and ended."""
    sent, free = np.empty(len(times)), [0.0] * slots
    for at, time in enumerate(times):
        sent[at] = free[0]
        heapreplace(free, free[0] + time)
    return sent, sent + times


@given(TIMES, st.booleans())
def test_requests_of_an_open_loop_take_up_the_window(times, by_time):
    sent = np.arange(len(times)) * 3.0
    paced = rates.open_loop(sent, sent + times, by_time=by_time)
    assert paced.spent.sum() == pytest.approx((sent + times).max())


@given(TIMES, st.integers(1, 8))
def test_requests_of_a_closed_loop_take_up_the_window(times, slots):
    sent, ended = loop(times, slots)
    assert rates.closed_loop(sent, ended, slots).spent.sum() == pytest.approx(ended.max())


@given(TIMES)
def test_the_rate_is_in_its_interval(times):
    sent, ended = loop(times, 2)
    found = rates.rate(times, rates.closed_loop(sent, ended, 2))
    value = times.sum() / ended.max()
    assert 0 < found.low <= value * (1 + 1e-9)
    assert found.high >= value * (1 - 1e-9)


@given(TIMES, st.integers(2, 1000))
def test_another_unit_of_time_changes_nothing_else(times, scale):
    sent = np.arange(len(times)) * 30.0
    found = rates.rate(times, rates.open_loop(sent, sent + times, by_time=False))
    other = rates.rate(times, rates.open_loop(sent * scale, (sent + times) * scale, by_time=False))
    assert (other.low * scale, other.high * scale) == pytest.approx((found.low, found.high))


def test_cohorts_of_equal_answers_are_no_noise():
    """200 answers that take 7.68 s and bring 256 tokens, 32 at a time: every such run is the same one."""
    sent, ended = loop(np.full(200, 7.68), 32)
    found = rates.rate(np.full(200, 256.0), rates.closed_loop(sent, ended, 32))
    assert (found.low, found.high) == pytest.approx((200 * 256 / ended.max(),) * 2)


def test_a_slow_first_round_and_a_quick_last_one_are_no_noise():
    times = np.full(320, 8.0)
    times[:32] = np.linspace(12, 8, 32)
    times[-32:] = 6.0
    sent, ended = loop(times, 32)
    found = rates.rate(np.full(320, 256.0), rates.closed_loop(sent, ended, 32))
    value = 320 * 256 / ended.max()
    assert value * 0.96 < found.low < value < found.high < value * 1.04


@pytest.mark.parametrize("by_time", [True, False])
def test_even_sends_of_equal_answers_are_no_noise_however_long_the_drain(by_time):
    sent = np.arange(100.0)
    found = rates.rate(np.ones(100), rates.open_loop(sent, sent + 20, by_time=by_time))
    assert (found.low, found.high) == pytest.approx((100 / 119, 100 / 119), rel=2e-3)


def test_the_length_of_the_drain_is_part_of_the_error():
    """The last one of many exponential times ends as the extreme values of Gumbel do: pi / sqrt(6) means apart."""
    sent, times = np.arange(4000.0), np.random.default_rng(1).exponential(10.0, 4000)
    paced = rates.open_loop(sent, sent + times, by_time=True)
    assert paced.drain * paced.spent.sum() == pytest.approx(10 * np.pi / np.sqrt(6), rel=0.25)


def test_a_time_leaves_the_number_to_chance_and_a_number_the_time():
    sent = np.cumsum(np.random.default_rng(1).exponential(1.0, 400))
    ended = sent + 100.0
    by_time, by_number = (rates.open_loop(sent, ended, by_time=one) for one in (True, False))
    wide, narrow = (rates.rate(np.ones(400), one) for one in (by_time, by_number))
    sending, window = sent[-1] - sent[0], ended[-1] - sent[0]
    assert np.log(narrow.high / narrow.low) == pytest.approx(
        np.log(wide.high / wide.low) * sending / window, rel=0.05
    )


def test_of_a_window_of_two_latencies_nothing_can_be_said():
    sent = np.arange(50.0)
    found = rates.rate(np.ones(50), rates.open_loop(sent, sent + 49, by_time=False))
    assert found.low is None
    assert found.needs == 63
    assert found.reason == (
        "the run lasted as long as 2.0 requests behind each other, so it is ramp and drain for the most part; an interval"
        " takes 2.5 times the mean latency."
    )


def test_of_few_requests_nothing_can_be_said():
    sent = np.arange(19.0)
    assert rates.rate(np.ones(19), rates.open_loop(sent, sent + 1, by_time=False)).needs == 20


def test_where_nothing_was_brought_the_rate_is_0():
    sent = np.arange(50.0)
    found = rates.rate(np.zeros(50), rates.open_loop(sent, sent + 1, by_time=False))
    assert (found.low, found.high) == (0.0, 0.0)


def test_stretches_are_one_window():
    sent = np.arange(50.0)
    first, second = (rates.open_loop(sent, sent + time, by_time=False) for time in (1.0, 5.0))
    both = rates.joined([first, second])
    assert both.spent.sum() == pytest.approx(50 + 54)
    assert both.latencies == 54 / 5


@given(TIMES, st.integers(1, 8))
def test_all_slots_are_taken_at_once(times, slots):
    sent, ended = loop(times * 1000, slots)
    assert rates.at_once(sent, ended).max() <= slots
    # Before the last round, less the few that end just then.
    assert (rates.at_once(sent, ended)[slots - 1 : -slots] == slots).mean() > 0.8
