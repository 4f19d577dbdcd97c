from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadstone.stats import PERCENTILES, summarise, thin, weighted

finite = st.floats(-1e6, 1e6, allow_subnormal=False)


def summary_of(values, weights=None):
    array = np.array(values, float)
    return summarise(array if weights is None else weighted(array, np.array(weights, float)))


def test_a_summary_of_known_samples():
    found = summary_of([40, 10, 30, 20])
    assert (found.count, found.mean, found.min, found.max) == (4, 25.0, 10.0, 40.0)
    assert found.std == np.sqrt(125.0)
    assert found.percentiles["p50"] == 25.0
    assert found.percentiles["p25"] == 17.5


def test_std_is_the_populations():
    assert summary_of([1, 3]).std == 1.0


def test_one_sample_is_its_own_percentiles():
    found = summary_of([7])
    assert set(found.percentiles.values()) == {7.0}
    assert found.std == 0.0


def test_one_weighted_sample_is_its_own_percentiles():
    found = summary_of([0.1], [3])
    assert set(found.percentiles.values()) == {0.1}
    assert (found.count, found.mean) == (3, pytest.approx(0.1))


def test_weights_count_samples():
    found = summary_of([20, 5], [1, 3])
    assert (found.count, found.mean, found.min, found.max) == (4, 8.75, 5.0, 20.0)
    assert found.percentiles["p50"] == 5.0
    assert found.percentiles["p75"] == pytest.approx(8.75)  # position 2.25 of 5 5 5 20


def test_broken_weights_have_percentiles_between_the_values():
    found = summary_of([1, 2, 3], [0.5, 0.5, 0.5])
    assert found.percentiles["p50"] == pytest.approx(2.0)
    assert found.percentiles["p1"] >= 1.0
    assert found.percentiles["p99_9"] <= 3.0


def test_weights_below_one_sample_in_all_give_the_mean():
    assert summary_of([1, 3], [0.25, 0.25]).percentiles["p99"] == pytest.approx(2.0)


def test_a_summary_of_nothing_is_refused():
    with pytest.raises(ValueError, match="at least one sample"):
        summary_of([])
    with pytest.raises(ValueError, match="weight above 0"):
        summary_of([1.0], [0.0])


@pytest.mark.parametrize(
    ("count", "names"),
    [
        (10_000, ()),
        (9_999, ("p99_9",)),
        (1_000, ("p99_9",)),
        (999, ("p1", "p99", "p99_9")),
        (200, ("p1", "p99", "p99_9")),
        (20, ("p1", "p5", "p10", "p25", "p75", "p90", "p95", "p99", "p99_9")),
        (19, tuple(PERCENTILES)),
    ],
)
def test_a_percentile_with_fewer_than_ten_samples_beyond_it_is_thin(count, names):
    assert thin(count) == names


def test_a_weighted_sample_counts_once_for_thinness():
    assert "p50" in summary_of([1, 2], [500, 500]).thin


@given(st.lists(finite, min_size=1, max_size=60))
def test_percentiles_are_numpys(values):
    found = summary_of(values)
    for name, q in PERCENTILES.items():
        assert found.percentiles[name] == pytest.approx(np.quantile(values, q), rel=1e-12, abs=1e-9)
    assert found.std == pytest.approx(np.std(values), rel=1e-9, abs=1e-9)


@given(st.lists(st.tuples(finite, st.integers(1, 5)), min_size=1, max_size=40))
def test_whole_weights_repeat_samples(pairs):
    values, weights = zip(*pairs, strict=True)
    repeated = summary_of(np.repeat(values, weights))
    found = summary_of(values, weights)
    assert found.count == repeated.count
    assert found.mean == pytest.approx(repeated.mean, rel=1e-9, abs=1e-9)
    assert found.std == pytest.approx(repeated.std, rel=1e-6, abs=1e-6)
    for name, value in repeated.percentiles.items():
        assert found.percentiles[name] == pytest.approx(value, rel=1e-9, abs=1e-6)


@given(st.lists(st.tuples(finite, st.floats(0.01, 50)), min_size=1, max_size=40))
def test_weighted_percentiles_rise_and_stay_within_the_samples(pairs):
    found = summary_of(*zip(*pairs, strict=True))
    series = [found.min, *found.percentiles.values(), found.max]
    for lower, higher in pairwise(series):
        assert lower <= higher + 1e-6


def test_weights_are_added_up_across_blocks():
    values = np.arange(200_000, dtype=float)
    found = summary_of(values[::-1], np.ones(200_000))
    assert found.percentiles["p50"] == pytest.approx(99_999.5)
    assert found.count == 200_000
    assert found.thin == ()
