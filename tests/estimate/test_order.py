"""Intervals of quantiles."""

from __future__ import annotations

from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from loadstone.estimate import LEAST, order
from loadstone.estimate.spread import independent
from loadstone.histogram import Histogram

SERIES = arrays(np.float64, st.integers(LEAST, 200), elements=st.integers(0, 1_000).map(float))


def binomial(n: int, p: float, fewer_than: int) -> float:
    return sum(comb(n, i) * p**i * (1 - p) ** (n - i) for i in range(fewer_than))


def exponential(count: int, seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).exponential(100.0, count)


@pytest.mark.parametrize(
    ("q", "level", "beyond", "samples"),
    [
        (0.99, 0.99, 1, 459),
        (0.99, 0.99, 2, 662),
        (0.99, 0.95, 1, 299),
        (0.99, 0.95, 2, 473),
        (0.95, 0.95, 1, 59),
        (0.95, 0.95, 2, 93),
        (0.90, 0.95, 1, 29),
        (0.5, 0.95, 1, 5),
    ],
)
def test_the_samples_that_a_quantile_takes_are_those_of_wilks(q, level, beyond, samples):
    assert order.needed(q, level, beyond) == samples


@given(st.sampled_from([0.5, 0.9, 0.99]), st.integers(1, 5))
def test_one_sample_fewer_is_too_few(q, beyond):
    n = order.needed(q, 0.95, beyond)
    assert binomial(n, 1 - q, beyond) <= 0.05 < binomial(n - 1, 1 - q, beyond)


@pytest.mark.parametrize(
    ("count", "q", "found"),
    [(10, 0.5, (2, 9)), (20, 0.5, (6, 15)), (100, 0.5, (40, 61)), (367, 0.99, None), (5, 0.5, None)],
)
def test_the_ranks_are_those_of_the_tables(count, q, found):
    assert order.ranks(count, q) == found


@given(st.integers(20, 120), st.sampled_from([0.5, 0.75, 0.9]))
def test_ranks_hold_the_quantile_and_no_nearer_ones_do(count, q):
    found = order.ranks(count, q)
    if found is None:
        assert binomial(count, q, 1) > 0.025 or binomial(count, 1 - q, 1) > 0.025
        return
    low, high = found
    assert binomial(count, q, low) <= 0.025 < binomial(count, q, low + 1)
    above = count + 1 - high
    assert binomial(count, 1 - q, above) <= 0.025 < binomial(count, 1 - q, above + 1)


@given(SERIES, st.sampled_from([0.5, 0.9, 0.95]))
def test_the_quantile_is_in_its_interval(values, q):
    found = order.quantile(values, q)
    if found.low is not None:
        assert found.low <= np.quantile(values, q)
        assert found.high is None or np.quantile(values, q) <= found.high


@given(SERIES, st.integers(1, 50), st.integers(-500, 500))
def test_another_unit_or_zero_moves_the_interval_with_it(values, scale, shift):
    found, moved = order.quantile(values, 0.5), order.quantile(scale * values + shift, 0.5)
    ends = [None if end is None else scale * end + shift for end in found[:2]]
    assert list(moved[:2]) == pytest.approx(ends)


@given(st.integers(20, 2_000), st.sampled_from([0.5, 0.9, 0.99]))
def test_positions_are_within_a_rank_of_the_ranks(count, q):
    found, whole = order.positions(count, q), order.ranks(count, q)
    assert (found is None) == (whole is None)
    if found is not None:
        assert whole[0] <= found[0] < whole[0] + 1
        assert whole[1] - 1 < found[1] <= whole[1]


@given(st.integers(20, 500))
def test_positions_about_the_median_are_mirrored(count):
    low, high = order.positions(count, 0.5)
    assert low + high == pytest.approx(count + 1)


def test_between_ranks_the_p99_of_a_thousand_is_held_as_often_as_said():
    """Whole ranks hold it in 97.6 % of cases; of 20,000 the rest is chance of 0.2 points."""
    low, high = order.positions(1_000, 0.99)
    # Ranks about the p99 of exponential samples: gaps to the next larger one are exponential too, over how many are above.
    random = np.random.default_rng(1)
    above = np.cumsum(random.exponential(1.0, (20_000, 1_000)) / np.arange(1_000, 0, -1), axis=1)
    at = np.arange(1, 1_001)
    held = [np.interp(low, at, row) <= -np.log(0.01) <= np.interp(high, at, row) for row in above]
    assert np.mean(held) == pytest.approx(0.95, abs=0.006)


def test_of_independent_samples_it_is_from_position_to_position():
    values = exponential(1_000)
    low, high = order.positions(1_000, 0.99)
    found = order.quantile(values, 0.99)
    assert independent(values)
    ends = np.interp([low - 1, high - 1], np.arange(1_000), np.sort(values))
    assert (found.low, found.high, found.effective) == (*ends, 1_000)


def test_a_median_that_goes_up_with_skewed_crowds_reaches_farther_up_in_ranks():
    crowds = np.repeat(np.random.default_rng(4).exponential(1.0, 60) ** 2, 50)
    values = crowds + np.random.default_rng(5).exponential(0.1, 3_000)
    found, ordered = order.quantile(values, 0.5), np.sort(values)
    down = 1_500 - np.searchsorted(ordered, found.low)
    assert found.high is None or np.searchsorted(ordered, found.high) - 1_500 > down


def test_too_few_independent_samples_tell_how_many_it_takes():
    found = order.quantile(exponential(200), 0.99)
    assert (found.low, found.high, found.needs) == (None, None, 368)
    assert found.reason == "its interval takes 368 independent samples, and there are 200."


def test_samples_that_hang_together_have_a_wider_one():
    values = exponential(400)
    together = np.repeat(values, 10)
    found, plain = order.quantile(together, 0.5), order.quantile(exponential(4_000), 0.5)
    assert not independent(together)
    assert found.effective < 1_000
    assert found.high - found.low > 1.5 * (plain.high - plain.low)


def test_a_tail_of_one_crowd_is_open_above_and_tells_what_it_takes():
    values = exponential(2_000)
    values[900:960] += 5_000
    found = order.quantile(values, 0.99)
    assert found.low is not None
    assert found.high is None
    assert found.needs > 2_000
    assert f"{found.needs:,}" in found.reason


def test_equal_samples_are_their_quantile():
    assert order.quantile(np.full(1_000, 7.0), 0.9)[:2] == (7.0, 7.0)


def parts(values: np.ndarray, count: int = 64) -> list[Histogram]:
    found = []
    for part in np.array_split(values, count):
        found.append(Histogram())
        found[-1].add(part)
    return found


def test_a_pooled_quantile_is_that_of_the_samples():
    values = exponential(20_000)
    pooled, plain = order.pooled(parts(values), 0.9), order.quantile(values, 0.9)
    assert pooled.low <= np.quantile(values, 0.9) <= pooled.high
    assert pooled.high - pooled.low == pytest.approx(plain.high - plain.low, rel=0.6)


def test_parts_that_differ_make_a_pooled_one_wider():
    values = exponential(20_000)
    drifting = values * np.repeat(np.random.default_rng(2).uniform(0.5, 1.5, 64), 20_000 // 64 + 1)[:20_000]
    narrow, wide = order.pooled(parts(values), 0.5), order.pooled(parts(drifting), 0.5)
    assert wide.high - wide.low > 3 * (narrow.high - narrow.low)


def test_few_parts_have_none():
    found = order.pooled(parts(exponential(300), 10), 0.5)
    assert (found.low, found.reason) == (
        None,
        "the samples are in 10 parts of the run, and an interval takes 20.",
    )
