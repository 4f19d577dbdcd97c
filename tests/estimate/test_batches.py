"""Intervals of means and of ratios."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from loadstone.estimate import LEAST, batches
from loadstone.estimate.spread import BATCHES, means, spread
from loadstone.estimate.student import t

SERIES = arrays(np.float64, st.integers(LEAST, 300), elements=st.integers(0, 1_000).map(float))


def normal(count: int, seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).normal(10, 2, count)


@given(SERIES)
def test_the_mean_is_in_its_interval(values):
    found = batches.mean(values)
    assert found.low - 1e-9 <= values.mean() <= found.high + 1e-9


@given(SERIES, st.integers(1, 50), st.integers(-500, 500))
def test_another_unit_or_zero_moves_the_interval_with_it(values, scale, shift):
    found, moved = batches.mean(values), batches.mean(scale * values + shift)
    assert moved.low == pytest.approx(scale * found.low + shift, rel=1e-6, abs=1e-4)
    assert moved.high == pytest.approx(scale * found.high + shift, rel=1e-6, abs=1e-4)


@given(SERIES)
def test_a_mirror_image_has_the_mirrored_interval(values):
    found, mirrored = batches.mean(values), batches.mean(-values)
    assert (mirrored.low, mirrored.high) == pytest.approx((-found.high, -found.low), rel=1e-6, abs=1e-6)


@given(SERIES)
def test_never_more_effective_samples_than_there_are(values):
    assert 0 < batches.mean(values).effective <= len(values)


def test_of_independent_samples_it_is_the_textbooks():
    values = normal(10_000)
    found = batches.mean(values)
    assert found.high - found.low == pytest.approx(2 * 1.96 * values.std() / 100, rel=0.002)
    assert found.effective == 10_000


def test_one_crowd_in_samples_that_else_stand_alone_is_seen():
    values = normal(10_000)
    values[5_000:5_030] += 200
    assert batches.mean(values).effective < 1_000


def test_samples_that_come_ten_times_over_tell_a_tenth():
    repeated = batches.mean(np.repeat(normal(3_200), 10))
    assert repeated.effective == pytest.approx(3_200, rel=0.6)


def test_equal_samples_leave_no_doubt():
    found = batches.mean(np.full(50, 3.0))
    assert (found.low, found.high, found.effective) == (3.0, 3.0, 50)


def test_of_skewed_samples_it_reaches_farther_up():
    values = np.random.default_rng(3).exponential(1.0, 400) ** 2
    found = batches.mean(values)
    assert found.high - values.mean() > values.mean() - found.low


@pytest.mark.parametrize("count", [0, 1, LEAST - 1])
def test_too_few_samples_have_none(count):
    found = batches.mean(np.ones(count))
    assert (found.low, found.high, found.needs) == (None, None, LEAST)
    assert str(count) in found.reason


def test_a_ratio_of_equal_weights_is_a_mean():
    values = normal(640)
    assert batches.ratio(values, np.ones(640))[:2] == pytest.approx(batches.mean(values)[:2])


@given(SERIES)
def test_the_ratio_is_in_its_interval(values):
    weights = 1.0 + np.arange(len(values)) % 7
    found = batches.ratio(values, weights)
    assert found.low - 1e-9 <= values.sum() / weights.sum() <= found.high + 1e-9


def test_a_constant_ratio_leaves_no_doubt():
    weights = 1.0 + np.arange(100) % 7
    assert batches.ratio(3 * weights, weights)[:2] == pytest.approx((3.0, 3.0))


def test_a_ratio_to_nothing_has_none():
    assert batches.ratio(np.ones(50), np.zeros(50)).low is None


def test_batches_are_of_nearly_equal_length_and_lose_no_sample():
    found = means(np.arange(1_000.0))
    assert len(found) == BATCHES
    lengths = np.diff(np.arange(BATCHES + 1) * 1_000 // BATCHES)
    assert set(lengths) == {31, 32}
    assert float(found @ lengths) == pytest.approx(np.arange(1_000).sum())


def test_one_crowd_leaves_less_freedom_than_noise():
    quiet = normal(3_200)
    crowded = quiet.copy()
    crowded[1_500:1_600] += 50
    assert spread(crowded).freedom < 3 < 15 < spread(quiet).freedom
    assert spread(crowded).t == t(spread(crowded).freedom) > 3
