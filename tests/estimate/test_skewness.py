"""How much farther an interval reaches up than down."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadstone.estimate.skewness import handed_on, reach

T = st.floats(1.0, 20.0)


@given(T)
def test_without_skewness_it_reaches_as_far_up_as_down(t):
    assert reach(t, 0.0) == (t, t)


@given(T, st.floats(0.01, 2.0))
def test_of_the_skewed_it_reaches_farther_up_and_the_mirror_image_farther_down(t, skew):
    down, up = reach(t, skew)
    assert down < up
    assert reach(t, -skew) == pytest.approx((up, down))


def test_by_hand():
    """a = 0.1: (cbrt(1 + 0.6 * 1.9) - 1) / 0.2 and (1 - cbrt(1 - 0.6 * 2.1)) / 0.2."""
    assert reach(2.0, 0.6) == pytest.approx(((2.14 ** (1 / 3) - 1) / 0.2, (1 + 0.26 ** (1 / 3)) / 0.2))


def test_what_goes_with_the_values_has_all_their_skewness_and_what_does_not_has_none():
    values = np.random.default_rng(1).exponential(1.0, 32)
    assert handed_on(values, 3 * values + 1) == pytest.approx(1.0)
    assert handed_on(values, -values) == pytest.approx(-1.0)
    assert handed_on(values, np.ones(32)) == 0.0


def test_half_of_it_has_an_eighth():
    one, other = np.array([1.0, 1.0, -1.0, -1.0]), np.array([1.0, -1.0, 1.0, -1.0])
    assert handed_on(one, 0.5 * one + np.sqrt(0.75) * other) == pytest.approx(1 / 8)
