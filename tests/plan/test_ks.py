"""The test that the other tests are made with: known values, and that it tells distributions apart."""

from __future__ import annotations

import math
from random import Random

import pytest
from tests.plan.ks import distance, exponential, gamma, kolmogorov, p_value


@pytest.mark.parametrize(
    ("x", "above"),
    [(1.2238, 0.10), (1.3581, 0.05), (1.6276, 0.01), (1.9495, 0.001), (0.8276, 0.50), (0.5196, 0.95)],
)
def test_the_percentage_points_of_kolmogorovs_distribution(x, above):
    assert 1 - kolmogorov(x) == pytest.approx(above, rel=1e-3)


def test_both_series_agree_where_they_meet():
    assert kolmogorov(1.2 - 1e-9) == pytest.approx(kolmogorov(1.2), abs=1e-8)
    assert kolmogorov(0.0) == 0.0


def test_the_distance_is_taken_on_both_sides_of_every_step():
    assert distance([0.5], lambda x: x) == 0.5
    assert distance([0.1, 0.2], lambda x: x) == pytest.approx(0.8)
    assert distance([0.9, 0.8], lambda x: x) == pytest.approx(0.8)


@pytest.mark.parametrize("x", [1e-9, 0.1, 1.0, 3.0, 30.0])
def test_gamma_in_its_closed_forms(x):
    assert gamma(1)(x) == pytest.approx(-math.expm1(-x), rel=1e-12)
    assert gamma(0.5)(x) == pytest.approx(math.erf(math.sqrt(x / 2)), rel=1e-12)
    erlang = 1 - sum(math.exp(-3 * x) * (3 * x) ** k / math.factorial(k) for k in range(3))
    assert gamma(3)(x) == pytest.approx(erlang, abs=1e-12)


def test_p_values_of_samples_from_the_distribution_are_even_between_0_and_1():
    random = Random(1)
    found = [p_value([random.random() for _ in range(50)], lambda x: x) for _ in range(400)]
    assert p_value(found, lambda x: x) > 0.001
    assert 0.02 < sum(p < 0.05 for p in found) / 400 < 0.09


def test_a_mean_that_is_five_percent_off_is_found():
    random = Random(2)
    sample = [random.expovariate(1.0) for _ in range(10_000)]
    assert p_value(sample, exponential()) > 0.001
    assert p_value(sample, exponential(1.05)) < 0.001
    assert p_value(sample, gamma(1.1)) < 0.001


def test_values_that_are_blurred_are_as_near_as_they_can_be():
    assert distance([0.5], lambda x: x, blur=0.1) == pytest.approx(0.4)
    assert distance([0.9, 0.8], lambda x: x, blur=0.2) == pytest.approx(0.6)
