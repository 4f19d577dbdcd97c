"""Ratios of runs: what they are exactly, and how often their intervals hold."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loadstone.estimate.blocks import blocks, draws
from loadstone.estimate.ratio import Ratio, Untold, compared, of_intervals, over_runs
from loadstone.estimate.statistic import PARTS, mean, percentile, sums
from loadstone.estimate.tails import holm, two_sided

SEEDS = st.integers(0, 2**32 - 1)


def gamma(seed, count=400):
    return np.random.default_rng(seed).gamma(4, 5, count) + 5


def correlated(seed, count=2000, phi=0.8):
    rng = np.random.default_rng(seed)
    noise = rng.standard_normal(count)
    series = np.empty(count)
    series[0] = noise[0] / math.sqrt(1 - phi * phi)
    for i in range(1, count):
        series[i] = phi * series[i - 1] + noise[i]
    return series


# ---- draws ----------------------------------------------------------------------------------------------


@given(st.integers(1, 200), st.integers(1, 50), SEEDS)
def test_every_resample_is_as_long_as_the_series(count, length, seed):
    times = draws(count, min(length, count), 20, seed)
    assert times.shape == (20, count)
    assert (times.sum(axis=1) == count).all()
    assert times.min() >= 0


def test_every_element_is_drawn_as_often_as_every_other():
    times = draws(50, 7, 20_000, 1)
    assert times.mean(axis=0) == pytest.approx(np.ones(50), abs=0.05)


def test_neighbours_are_drawn_together():
    times = draws(300, 10, 5000, 1)
    assert np.corrcoef(times[:, 100], times[:, 101])[0, 1] == pytest.approx(0.9, abs=0.03)
    assert np.corrcoef(times[:, 100], times[:, 115])[0, 1] == pytest.approx(0.0, abs=0.05)


# ---- blocks ---------------------------------------------------------------------------------------------


def test_independent_elements_have_short_blocks():
    found = [blocks(gamma(seed, 1000)) for seed in range(40)]
    assert np.mean([one.inefficiency for one in found]) < 1.3
    assert np.median([one.length for one in found]) < 6


def test_the_inefficiency_of_a_first_order_process_is_found():
    """(1 + phi) / (1 - phi) = 9."""
    found = [blocks(correlated(seed)).inefficiency for seed in range(40)]
    assert np.mean(found) == pytest.approx(9, rel=0.15)


def test_a_constant_has_no_spread():
    assert blocks(np.full(100, 3.7)).length == 1
    assert blocks(np.full(100, 3.7)).variance == pytest.approx(0, abs=1e-20)


# ---- statistics -----------------------------------------------------------------------------------------


@given(st.lists(st.floats(0.1, 1e4), min_size=1, max_size=1500))
def test_a_mean_and_percentiles_are_those_of_numpy(values):
    array = np.array(values)
    assert mean(array).value == pytest.approx(array.mean())
    for q in (0.5, 0.9):
        assert percentile(array, q).value == np.quantile(array, q)


def test_parts_are_in_order_and_not_more_than_there_are():
    assert len(mean(np.ones(10)).numerators) == 10
    parts = sums(np.arange(10_000.0), np.ones(10_000))
    assert len(parts.numerators) == PARTS
    assert (np.diff(parts.numerators / parts.denominators) > 0).all()


def test_a_drawn_percentile_is_that_of_what_was_drawn():
    values = np.array([5.0, 1.0, 3.0])
    times = np.array([[3, 0, 0], [0, 3, 0], [1, 1, 1], [0, 1, 2]], np.float32)
    drawn = percentile(values, 0.5).drawn(times, np.random.default_rng(0))
    assert drawn.tolist() == [5.0, 1.0, 3.0, 3.0]


def test_many_values_go_into_bins_and_a_drawn_percentile_stays_as_near():
    values = np.random.default_rng(1).gamma(4, 5, 20_000)
    found = percentile(values, 0.99)
    drawn = found.drawn(np.ones((1, PARTS), np.float32), np.random.default_rng(0))
    assert drawn[0] == pytest.approx(found.value, rel=0.005)


def test_weights_count_as_often_as_they_say():
    owners, weights = np.array([0, 0, 1]), np.array([1.0, 1.0, 8.0])
    assert percentile(np.array([1.0, 2.0, 9.0]), 0.5, owners, 2, weights).value == 9.0


# ---- ratios ---------------------------------------------------------------------------------------------


@settings(max_examples=25, deadline=None)
@given(SEEDS, st.floats(0.5, 2.0))
def test_the_same_work_a_constant_factor_slower_is_that_factor_without_a_doubt(seed, factor):
    a = gamma(seed)
    for one, two in ((mean(a), mean(a * factor)), (percentile(a, 0.5), percentile(a * factor, 0.5))):
        found = compared(one, two, paired=True)
        assert found.value == pytest.approx(factor)
        low, high = found.interval()
        assert low == pytest.approx(factor, rel=1e-5)
        assert high == pytest.approx(factor, rel=1e-5)


@settings(max_examples=25, deadline=None)
@given(SEEDS, st.booleans())
def test_the_ratio_the_other_way_round_is_the_inverse(seed, paired):
    a, b = mean(gamma(seed)), mean(gamma(seed + 1))
    there, back = compared(a, b, paired=paired), compared(b, a, paired=paired)
    assert there.value * back.value == pytest.approx(1)
    assert there.error == pytest.approx(back.error, rel=0.15)


@settings(max_examples=25, deadline=None)
@given(SEEDS, st.floats(1e-3, 1e3))
def test_the_unit_changes_nothing(seed, unit):
    a, b = gamma(seed), gamma(seed + 1)
    plain, other = (compared(mean(a * scale), mean(b * scale), paired=False) for scale in (1.0, unit))
    assert other.value == pytest.approx(plain.value)
    assert other.interval() == pytest.approx(plain.interval(), rel=1e-6)


def test_the_same_data_give_the_same_interval():
    first, second = (compared(mean(gamma(1)), mean(gamma(2)), paired=False) for _ in range(2))
    assert first == second


def test_an_interval_excludes_no_difference_just_when_the_tail_is_below_the_level():
    for seed in range(60):
        found = compared(mean(gamma(seed)), mean(gamma(1000 + seed) * 1.03), paired=False)
        low, high = found.interval()
        assert (low > 1 or high < 1) == (found.tail < 0.05)


@pytest.mark.slow
@pytest.mark.parametrize("q", [None, 0.5, 0.9])
def test_independent_runs_of_one_server_are_told_apart_in_about_five_percent(q):
    def one(seed):
        return mean(gamma(seed, 600)) if q is None else percentile(gamma(seed, 600), q)

    found = [compared(one(2 * n), one(2 * n + 1), paired=False, resamples=300) for n in range(300)]
    assert 0.02 <= np.mean([one.tail < 0.05 for one in found]) <= 0.085


def test_the_error_of_a_mean_of_correlated_requests_is_theirs_and_not_that_of_independent_ones():
    """Autoregression with phi 0.8: the error is three times that of as many independent requests."""
    errors = []
    for seed in range(20):
        a, b = (mean(np.exp(0.1 * correlated(2 * seed + side))) for side in (0, 1))
        errors.append(compared(a, b, paired=False).error)
    plain = 0.1 / math.sqrt(1 - 0.64) * math.sqrt(2 / 2000)
    assert np.mean(errors) == pytest.approx(3 * plain, rel=0.15)


def test_too_few_independent_requests_give_no_interval():
    walk = 10 + np.cumsum(np.random.default_rng(1).standard_normal(500)) / 20
    found = compared(mean(walk), mean(walk[::-1].copy()), paired=False)
    assert isinstance(found, Untold)
    assert found.reason.startswith("too few independent requests")
    assert found.value == pytest.approx(1)


def test_a_percentile_of_values_that_hang_together_says_why_there_is_no_interval():
    """As many as a p99 takes, but in crowds of ten that are nearly the same."""
    crowds = [np.repeat(20 + np.random.default_rng(seed).gamma(4, 5, 120), 10) for seed in (1, 2)]
    found = compared(*(percentile(one, 0.99) for one in crowds), paired=False)
    assert isinstance(found, Untold)
    assert found.reason.startswith("too few values beyond this percentile are independent")


def test_a_ratio_of_nothing_is_untold():
    assert isinstance(compared(mean(np.zeros(100)), mean(np.ones(100)), paired=False), Untold)
    assert isinstance(compared(mean(np.array([])), mean(np.ones(100)), paired=False), Untold)


# ---- power ----------------------------------------------------------------------------------------------


@given(st.floats(0.001, 0.3), st.floats(8, 1e6), st.sampled_from([0.05, 0.01]))
def test_the_smallest_difference_that_is_shown_is_found_in_four_of_five(error, freedom, level):
    ratio = Ratio(1.0, error, freedom, "")
    assert ratio.power(ratio.smallest(level), level) == pytest.approx(0.8, abs=1e-3)


def test_the_smallest_difference_is_that_of_the_textbook():
    """(1.96 + 0.84) x 1 %."""
    assert math.log1p(Ratio(1.0, 0.01, math.inf, "").smallest()) == pytest.approx(0.02802, abs=1e-4)


def test_without_a_difference_the_power_is_the_level():
    assert Ratio(1.0, 0.01, math.inf, "").power(0.0) == pytest.approx(0.05)


# ---- families, runs, intervals --------------------------------------------------------------------------


def test_holm_as_in_the_paper():
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])


@given(st.lists(st.floats(0, 1), max_size=20))
def test_holm_keeps_the_order_and_never_helps(tails):
    adjusted = holm(tails)
    assert all(after >= before for before, after in zip(tails, adjusted, strict=True))
    assert all(
        after <= min(len(tails) * before, 1) + 1e-12 or after <= 1
        for before, after in zip(tails, adjusted, strict=True)
    )
    order = np.argsort(tails, kind="stable")
    assert np.all(np.diff(np.array(adjusted)[order]) >= 0)


def test_tails_of_student_as_in_the_tables():
    assert two_sided(2.228, 10) == pytest.approx(0.05, abs=1e-4)
    assert two_sided(12.706, 1) == pytest.approx(0.05, abs=1e-5)
    assert two_sided(1.959964, math.inf) == pytest.approx(0.05, abs=1e-6)
    assert two_sided(0.0, 5) == 1.0


def test_runs_are_compared_by_welch():
    """Logarithms 0, 1, 2 and 1, 2, 3: 1 apart, each with an error of sqrt(1/3), four degrees of freedom."""
    a, b = np.exp([0.0, 1.0, 2.0]), np.exp([1.0, 2.0, 3.0])
    found = over_runs(a, b, paired=False)
    assert found.value == pytest.approx(math.e)
    assert found.error == pytest.approx(math.sqrt(2 / 3))
    assert found.freedom == pytest.approx(4)
    together = over_runs(a, b * np.exp([0.3, 0.0, -0.3]), paired=True)
    assert together.error == pytest.approx(0.3 / math.sqrt(3))


@pytest.mark.parametrize("paired", [False, True])
def test_runs_that_do_not_differ_at_all_are_no_certainty(paired):
    found = over_runs([18.4, 18.4], [18.42, 18.42], paired=paired)
    assert isinstance(found, Untold)
    assert "do not differ at all" in found.reason
    assert found.value == pytest.approx(18.42 / 18.4)
    rounded = over_runs([0.1 + 0.2, 0.3], [0.3, 0.3], paired=paired)
    assert (rounded.value, rounded.error, rounded.tail) == (1.0, 0.0, 1.0)


def test_one_run_has_nothing_to_vary_from():
    assert isinstance(over_runs([1.0], [1.0, 2.0], paired=False), Untold)


def test_intervals_add_up_in_quadrature():
    found = of_intervals((10.0, 10 / 1.03, 10 * 1.03), (20.0, 20 / 1.04, 20 * 1.04))
    low, high = found.interval()
    assert found.value == 2
    assert math.log(high / 2) == pytest.approx(math.hypot(math.log(1.03), math.log(1.04)), rel=1e-6)
    assert low * high == pytest.approx(4)
