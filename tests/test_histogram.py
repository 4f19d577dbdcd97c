"""Histograms: percentiles within 0.1 % of those of the samples, everything else exact, in any order."""

from __future__ import annotations

import math
from itertools import chain

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadstone.histogram import RELATIVE_ERROR, Histogram
from loadstone.stats import PERCENTILES, summarise, weighted

VALUES = st.floats(min_value=1e-6, max_value=1e9) | st.just(0.0)
WEIGHTS = st.integers(min_value=1, max_value=40).map(float) | st.floats(min_value=0.01, max_value=9)
SAMPLES = st.lists(VALUES, min_size=1, max_size=200).map(lambda values: np.array(values))
WEIGHTED = st.lists(st.tuples(VALUES, WEIGHTS), min_size=1, max_size=200).map(
    lambda pairs: tuple(np.array(column) for column in zip(*pairs, strict=True))
)
WHOLE = st.lists(
    st.lists(st.tuples(VALUES, st.integers(min_value=1, max_value=9).map(float)), min_size=1, max_size=30),
    min_size=2,
    max_size=6,
)


def histogram(values, weights=None):
    made = Histogram()
    made.add(np.asarray(values, np.float64), None if weights is None else np.asarray(weights, np.float64))
    return made


def agree(made, summary):
    for name, q in PERCENTILES.items():
        assert made.quantile(q) == pytest.approx(summary.percentiles[name], rel=RELATIVE_ERROR + 1e-9, abs=0)
    assert (made.min, made.max) == (summary.min, summary.max)
    assert made.mean == pytest.approx(summary.mean, rel=1e-12)
    assert made.std == pytest.approx(summary.std, rel=1e-6, abs=1e-7 * summary.max)


def test_the_error_is_below_a_thousandth():
    assert RELATIVE_ERROR < 0.001


@given(SAMPLES)
def test_it_agrees_with_the_summary_of_the_samples(values):
    made = histogram(values)
    assert (made.count, made.weight) == (len(values), len(values))
    agree(made, summarise(values.copy()))


@given(WEIGHTED)
def test_it_agrees_with_the_summary_of_weighted_samples(samples):
    values, weights = samples
    made = histogram(values, weights)
    assert made.count == len(values)
    assert made.weight == pytest.approx(weights.sum())
    agree(made, summarise(weighted(values, weights)))


@given(VALUES)
def test_one_value_is_exact(value):
    made = histogram([value])
    assert [made.quantile(q) for q in (0.0, 0.5, 1.0)] == [value] * 3
    assert (made.mean, made.std) == (value, 0.0)


@given(WHOLE, st.randoms(use_true_random=False))
def test_the_order_of_merging_changes_nothing(parts, random):
    made = [histogram(*zip(*part, strict=True)) for part in parts]
    shuffled = list(made)
    random.shuffle(shuffled)
    left, right = Histogram.merged(made), Histogram.merged(shuffled)
    at_once = histogram(*zip(*chain.from_iterable(parts), strict=True))
    for other in (right, at_once):
        assert (left.count, left.weight, left.min, left.max) == (
            other.count,
            other.weight,
            other.min,
            other.max,
        )
        assert [left.quantile(q) for q in PERCENTILES.values()] == [
            other.quantile(q) for q in PERCENTILES.values()
        ]
        assert left.mean == pytest.approx(other.mean, rel=1e-12)
        assert left.std == pytest.approx(other.std, rel=1e-9, abs=1e-9 * left.max)


def test_merging_leaves_the_other_one_as_it_was():
    whole, part = histogram([1.0]), histogram([2.0])
    whole.merge(part)
    whole.add(np.array([3.0]))
    assert (part.count, part.mean, part.quantile(1.0)) == (1, 2.0, 2.0)
    assert (whole.count, whole.mean) == (3, 2.0)


@given(SAMPLES, VALUES)
def test_a_share_is_that_below_a_limit_within_a_thousandth(values, limit):
    share = histogram(values).share_below(limit)
    least = (values < limit * (1 - RELATIVE_ERROR * 1.01)).mean()
    most = (values < limit * (1 + RELATIVE_ERROR * 1.01)).mean()
    assert least <= share + 1e-12
    assert share <= most + 1e-12


def test_shares_at_the_ends_are_exact():
    made = histogram([1.0, 1.0001, 2.0])
    assert [made.share_below(x) for x in (1.0, 1.5, 2.0, math.nextafter(2.0, 3.0))] == [
        0.0,
        2 / 3,
        2 / 3,
        1.0,
    ]


def test_zero_has_a_bin_of_its_own():
    made = histogram([0.0, -0.0, 5e-324, 4.0])
    assert [made.quantile(q) for q in (0.0, 0.5)] == [0.0, 0.0]
    assert made.share_below(1e-300) == 0.75


def test_blocks_of_values_are_one_distribution():
    values = np.random.default_rng(1).lognormal(3, 2, 300_001)
    agree(histogram(values), summarise(values.copy()))


def test_the_spread_survives_a_large_mean():
    values = 1e9 + np.arange(1000.0)
    made = Histogram.merged(histogram(part) for part in np.split(values, 10))
    assert made.std == pytest.approx(np.arange(1000.0).std(), rel=1e-9)


def test_memory_goes_by_the_range_and_not_by_the_samples():
    rng = np.random.default_rng(2)
    made = histogram(rng.uniform(1.0, 1000.0, 1_000_000))
    for _ in range(2):
        assert 5_000 * 16 < made.nbytes <= 5_120 * 16
        made.add(rng.uniform(1.0, 1000.0, 1_000_000))


def test_the_widest_values_there_are_take_few_bins():
    made = histogram([5e-324, 2.3e-308, 1.0, 1e150])
    assert made.nbytes == 4 * 16
    assert made.quantile(1 / 3) == pytest.approx(2.3e-308, rel=RELATIVE_ERROR)


@pytest.mark.parametrize("value", [-1e-9, math.nan, math.inf])
def test_what_is_no_time_is_refused(value):
    with pytest.raises(ValueError, match="finite values of at least 0"):
        histogram([1.0, value])


@pytest.mark.parametrize("weight", [-1.0, math.nan, math.inf])
def test_a_weight_that_is_none_is_refused(weight):
    with pytest.raises(ValueError, match="finite weights"):
        histogram([1.0, 2.0], [1.0, weight])


def test_without_weight_nothing_is_known():
    for made in (Histogram(), histogram([3.0], [0.0])):
        assert made.weight == 0
        assert all(math.isnan(x) for x in (made.mean, made.std, made.quantile(0.5), made.share_below(1.0)))


def test_samples_of_weight_zero_move_no_percentile():
    made = histogram([1.0, 8.0, 9.0], [0.0, 2.0, 0.0])
    assert (made.count, made.weight, made.mean, made.quantile(0.0), made.quantile(1.0)) == (
        3,
        2.0,
        8.0,
        pytest.approx(8.0, rel=RELATIVE_ERROR),
        pytest.approx(8.0, rel=RELATIVE_ERROR),
    )
