from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadstone.stats import PERCENTILES, summarise, survival, thin, weighted

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


def survival_of(ended, censored=()):
    return survival(np.array(ended, float), np.array(censored, float))


def test_a_survival_curve_by_hand():
    # 6 watched: S(1) = 5/6; 2 broken off at 2; S(3) = 5/6 * 2/3 = 5/9; 4 broken off; S(5) = 0
    found = survival_of([1, 3, 5], [2, 2, 4]).percentiles
    assert (found["p10"], found["p25"], found["p50"], found["p99_9"]) == (1.0, 3.0, 5.0, 5.0)


def test_the_published_example():
    # Freireich et al. (1963), weeks of remission under 6-MP, the textbook case: S(10) = 0.753, S(23) = 0.448.
    ended = [6, 6, 6, 7, 10, 13, 16, 22, 23]
    censored = [6, 9, 10, 11, 17, 19, 20, 25, 32, 32, 34, 35]
    found = survival_of(ended, censored)
    assert found.percentiles["p10"] == 6.0  # S(6) = 0.857
    assert found.percentiles["p25"] == 13.0  # S(10) = 0.753, S(13) = 0.690
    assert found.percentiles["p50"] == 23.0
    assert (found.percentiles["p75"], found.least) == (None, 35.0)


def test_what_is_broken_off_at_the_moment_of_an_end_was_watched():
    assert survival_of([2, 2], [2, 2]).percentiles["p50"] == 2.0  # S(2) = 1 - 2/4
    assert survival_of([2], [2, 2]).percentiles["p50"] is None  # S(2) = 1 - 1/3


def test_where_all_are_broken_off_only_the_least_is_known():
    found = survival_of([], [3, 9, 1])
    assert set(found.percentiles.values()) == {None}
    assert found.least == 9.0
    with pytest.raises(ValueError, match="at least one time"):
        survival_of([])


@given(st.lists(finite, min_size=1, max_size=80))
def test_with_nothing_censored_a_percentile_is_a_rank(values):
    found = survival_of(values)
    for name, q in PERCENTILES.items():
        assert found.percentiles[name] == np.quantile(values, q, method="inverted_cdf")


def reached(percentile):
    """A percentile that is not reached lies beyond all others."""
    return np.inf if percentile is None else percentile


times = st.lists(st.integers(0, 50), max_size=40)


@given(times, times, st.integers(0, 60))
def test_what_is_broken_off_besides_lowers_no_percentile(ended, censored, more):
    if not ended and not censored:
        return
    before = survival_of(ended, censored).percentiles
    after = survival_of(ended, [*censored, more]).percentiles
    assert all(reached(after[name]) >= reached(value) for name, value in before.items())


@given(times.filter(bool), times)
def test_a_survival_curve_only_falls(ended, censored):
    found = [reached(value) for value in survival_of(ended, censored).percentiles.values()]
    assert found == sorted(found)


def test_cutting_off_the_slow_ones_does_not_move_the_percentiles():
    random = np.random.default_rng(7)
    latency = random.lognormal(0.0, 1.0, 40_000)
    patience = random.uniform(0.0, 8.0, 40_000)  # how long each could run before the end of the run cut it
    whole = latency <= patience
    found = survival(latency[whole], patience[~whole]).percentiles
    rosy = summarise(latency[whole]).percentiles
    for name, z in {"p50": 0.0, "p90": 1.2816, "p95": 1.6449}.items():
        assert found[name] == pytest.approx(np.exp(z), rel=0.03)
    assert rosy["p95"] < 0.75 * np.exp(1.6449)


def test_a_tail_that_nobody_saw_is_not_made_up():
    latency = np.arange(1.0, 101.0)
    whole = latency <= 80
    found = survival(latency[whole], np.full(20, 80.0))
    assert (found.percentiles["p75"], found.percentiles["p90"], found.least) == (75.0, None, 80.0)
