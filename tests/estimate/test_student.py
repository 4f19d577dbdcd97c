"""Points of Student's distribution, and the incomplete beta function behind them."""

from __future__ import annotations

from math import comb, inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadstone.estimate.beta import below, binomial_below
from loadstone.estimate.student import normal, t


@pytest.mark.parametrize(
    ("freedom", "level", "point"),
    [
        (1, 0.95, 12.7062),
        (2, 0.95, 4.3027),
        (3, 0.95, 3.1824),
        (5, 0.95, 2.5706),
        (10, 0.95, 2.2281),
        (19, 0.95, 2.0930),
        (30, 0.95, 2.0423),
        (1_000, 0.95, 1.9623),
        (1, 0.9, 6.3138),
        (5, 0.99, 4.0321),
        (inf, 0.95, 1.9600),
    ],
)
def test_the_points_are_those_of_the_tables(freedom, level, point):
    assert t(freedom, level) == pytest.approx(point, abs=5e-5)


def test_the_normal_points():
    assert [normal(level) for level in (0.90, 0.95, 0.99)] == pytest.approx(
        [1.6449, 1.9600, 2.5758], abs=5e-5
    )


@given(st.floats(1, 500), st.floats(0.01, 50))
def test_more_freedom_makes_a_smaller_point(freedom, more):
    assert t(freedom) >= t(freedom + more) > normal()


def test_less_than_one_degree_is_refused():
    with pytest.raises(ValueError, match="one degree"):
        t(0.5)


@given(st.integers(1, 60), st.floats(0.01, 0.99), st.data())
def test_the_binomial_is_its_sum(n, p, data):
    hits = data.draw(st.integers(0, n + 1))
    summed = sum(comb(n, i) * p**i * (1 - p) ** (n - i) for i in range(hits))
    assert binomial_below(hits, n, p) == pytest.approx(summed, abs=1e-11)


@given(st.floats(0, 1), st.floats(0.5, 1e4), st.floats(0.5, 1e4))
def test_the_beta_function_mirrors(x, a, b):
    assert below(x, a, b) + below(1 - x, b, a) == pytest.approx(1, abs=1e-7)
