"""Arrival processes: exact where they are exact, within bounds where they are drawn."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import islice, pairwise
from random import Random
from statistics import fmean, pstdev

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadstone.plan import arrivals, seeds

S = 1_000_000_000
DRAWS = 20_000


def gaps_s(times):
    return [(later - earlier) / S for earlier, later in pairwise([0, *islice(times, DRAWS)])]


@given(rate=st.floats(0.001, 100_000, allow_nan=False))
def test_constant_arrivals_lie_on_the_grid(rate):
    for index, at_ns in enumerate(islice(arrivals.constant(rate), 50)):
        assert abs(at_ns - Fraction(index * S) / Fraction(rate)) <= 1


@pytest.mark.parametrize("rate", [3.0, 7.0, 1_000.0 / 7, 500.0])
def test_constant_arrivals_do_not_drift(rate):
    at_ns = next(islice(arrivals.constant(rate), 1_000_000, None))
    assert abs(at_ns - Fraction(1_000_000 * S) / Fraction(rate)) <= 1


@pytest.mark.parametrize("seed", [0, 1, 42, 2**63])
@pytest.mark.parametrize("rate", [0.5, 10.0, 4_000.0])
def test_poisson_gaps_have_mean_one_over_rate_and_a_cv_of_one(seed, rate):
    gaps = gaps_s(arrivals.poisson(rate, Random(seed)))
    mean = fmean(gaps)
    assert mean * rate == pytest.approx(1, abs=4 / math.sqrt(DRAWS))
    assert pstdev(gaps) / mean == pytest.approx(1, abs=0.04)


@pytest.mark.parametrize("smoothness", [0.25, 1.0, 4.0, 100.0])
def test_gamma_gaps_have_mean_one_over_rate_and_a_cv_of_one_over_root_smoothness(smoothness):
    gaps = gaps_s(arrivals.gamma(20.0, smoothness, Random(5)))
    mean, cv = fmean(gaps), 1 / math.sqrt(smoothness)
    assert mean * 20 == pytest.approx(1, abs=4 * cv / math.sqrt(DRAWS))
    assert pstdev(gaps) / mean == pytest.approx(cv, rel=0.06)


def distance(gaps, rate):
    """Kolmogorov's: the largest gap between the drawn distribution and the exponential one."""
    ordered = sorted(gaps)
    expected = [-math.expm1(-rate * gap) for gap in ordered]
    return max(
        max((i + 1) / len(ordered) - share, share - i / len(ordered)) for i, share in enumerate(expected)
    )


@pytest.mark.parametrize("times", [lambda r: arrivals.poisson(9.0, r), lambda r: arrivals.gamma(9.0, 1.0, r)])
def test_poisson_and_gamma_of_smoothness_one_are_exponential(times):
    critical = 1.95 / math.sqrt(DRAWS)  # p = 0.001
    assert distance(gaps_s(times(Random(3))), 9.0) < critical
    assert distance(gaps_s(arrivals.gamma(9.0, 2.0, Random(3))), 9.0) > 10 * critical


@given(seed=st.integers(0, 2**64 - 1), rate=st.floats(0.01, 10_000), smoothness=st.floats(0.05, 50))
def test_drawn_times_never_go_back_and_depend_on_the_seed_alone(seed, rate, smoothness):
    def both():
        poisson = arrivals.poisson(rate, seeds.stream(seed, "a"))
        gamma = arrivals.gamma(rate, smoothness, seeds.stream(seed, "b"))
        return [list(islice(times, 40)) for times in (poisson, gamma)]

    poisson, gamma = both()
    assert [poisson, gamma] == both()
    assert poisson == sorted(poisson)
    assert gamma == sorted(gamma)
    assert poisson[0] >= 0


def test_times_stay_within_64_bits_at_any_rate():
    for rate in (1e-300, 1e6):
        for smoothness in (1e-300, 1.0, 1e6):
            for times in (
                arrivals.constant(rate),
                arrivals.poisson(rate, Random(1)),
                arrivals.gamma(rate, smoothness, Random(1)),
            ):
                assert all(0 <= at_ns <= arrivals.LATEST_NS for at_ns in islice(times, 100))
