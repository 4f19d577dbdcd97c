"""The exact interval of a share."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadstone.estimate.beta import binomial_below
from loadstone.estimate.clopper_pearson import high, low, trials


@pytest.mark.parametrize(
    ("hits", "n", "ends"),
    [(0, 10, (0.0, 0.3085)), (1, 10, (0.0025, 0.4450)), (81, 263, (0.2527, 0.3676)), (10, 10, (0.6915, 1.0))],
)
def test_its_values(hits, n, ends):
    """81 of 263 is the example of Newcombe (1998)."""
    assert (low(hits / n, n), high(hits / n, n)) == pytest.approx(ends, abs=5e-5)


@pytest.mark.parametrize("limit", [0.001, 0.01, 0.05])
@pytest.mark.parametrize("n", [50, 100, 170, 200, 380, 500, 1000])
def test_a_share_at_the_limit_is_seldom_proven_to_be_beyond_it(limit, n):
    """The probability is exact: that of so many hits that the lower end is above the limit."""
    first = next(hits for hits in range(n + 1) if low(hits / n, n) > limit)
    assert 1 - binomial_below(first, n, limit) <= 0.025
    within = [hits for hits in range(n + 1) if high(hits / n, n) <= limit]
    assert binomial_below(len(within), n, limit) <= 0.025


def test_one_error_in_170_does_not_prove_one_in_a_thousand_missed():
    assert low(1 / 170, 170) < 0.001 < 1 / 170


@given(st.floats(0, 1), st.floats(1, 1e5))
def test_the_share_lies_within_and_the_ends_change_places_with_hits_and_misses(share, n):
    assert 0 <= low(share, n) <= share <= high(share, n) <= 1
    assert high(1 - share, n) == pytest.approx(1 - low(share, n), abs=1e-9)


@given(st.sampled_from([0.0, 0.004, 0.02, 0.3]), st.sampled_from([0.001, 0.01, 0.05, 0.5]))
def test_with_so_many_trials_it_ends_there(share, end):
    n = trials(share, end)
    assert n is not None
    assert (high if end > share else low)(share, n) == pytest.approx(end, rel=1e-6)


def test_without_a_hit_it_is_the_rule_of_three():
    assert trials(0, 0.001) == pytest.approx(math.log(0.025) / math.log(0.999))


@pytest.mark.parametrize(("share", "end"), [(0.5, 0.5), (0.5, 0.0), (0.0, 1.0), (0.01, 0.01 + 1e-8)])
def test_no_number_of_trials_does(share, end):
    assert trials(share, end) is None
