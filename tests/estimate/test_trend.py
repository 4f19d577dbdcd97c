from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadstone.estimate.trend import trend


def test_a_rising_line_has_its_slope_and_hardly_a_chance():
    found = trend(np.arange(20) * 3.0 + 7)
    assert found.slope == 3.0
    # 190 pairs in order; variance 20 * 19 * 45 / 18 = 950; z = 189 / 30.8
    assert found.p == pytest.approx(8.7e-10, rel=0.01)


def test_what_does_not_change_has_no_trend():
    assert trend(np.full(10, 4.0)) == (1.0, 0.0)


def test_one_outlier_is_no_slope():
    values = np.array([5.0, 6, 5, 6, 5, 6, 5, 900])
    assert trend(values).slope < 1
    assert trend(values).p > 0.1


@given(st.lists(st.integers(-50, 50), min_size=3, max_size=30))
def test_time_turned_round_turns_the_slope_round(values):
    series = np.array(values, float)
    there, back = trend(series), trend(series[::-1])
    assert there.slope == pytest.approx(-back.slope)
    assert there.p == pytest.approx(back.p)
    assert 0 <= there.p <= 1


def walk(rng, n, r):
    values = [rng.standard_normal() / (1 - r * r) ** 0.5]
    for step in rng.standard_normal(n - 1):
        values.append(r * values[-1] + step)
    return np.array(values)


@pytest.mark.parametrize(("r", "most"), [(0.0, 0.02), (0.2, 0.03), (0.4, 0.05)])
def test_neighbours_that_are_alike_seldom_look_like_a_trend(r, most):
    rng = np.random.default_rng(7)
    alarms = [trend(walk(rng, 20, r)).p < 0.01 for _ in range(1000)]
    assert np.mean(alarms) < most


def test_a_drift_of_four_standard_deviations_is_found():
    rng = np.random.default_rng(7)
    found = [trend(rng.standard_normal(20) + np.linspace(0, 4, 20)).p < 0.01 for _ in range(300)]
    assert np.mean(found) > 0.85


def test_a_smooth_rise_is_found_though_what_a_line_leaves_of_it_hangs_together():
    assert trend(1 - np.exp(-3 * np.linspace(0, 1, 20))).p < 0.001


def test_two_values_have_no_trend():
    with pytest.raises(ValueError, match="three values"):
        trend(np.array([1.0, 2.0]))
