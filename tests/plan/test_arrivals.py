"""Arrival processes: exact where they are exact, from the right distribution where they are drawn."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import islice, pairwise
from random import Random
from statistics import fmean, pstdev

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.plan.ks import exponential, gamma, p_value

from loadstone.plan import arrivals, seeds
from loadstone.plan.rate import constant, passed, ramp, series

S = 1_000_000_000
DRAWS = 20_000

CURVES = {
    "constant": constant(20.0),
    "up": ramp(0.0, 50.0, 400.0),
    "down": ramp(50.0, 5.0, 400.0),
    "exponential": ramp(1.0, 80.0, 300.0, "exponential"),
    "series": series([(0, 1), (60, 40), (120, 40), (120, 5), (200, 0), (260, 0), (300, 30)]),
}


def gaps(positions, n=DRAWS):
    return [later - earlier for earlier, later in pairwise([0.0, *islice(positions, n)])]


def due(curve, positions, n):
    return list(islice(arrivals.rescaled(curve, positions), n))


def ramp_of(start, end, course="linear"):
    return arrivals.IndexRamp(start=start, end=end, course=course)


@given(rate=st.floats(0.001, 100_000, allow_nan=False))
def test_constant_arrivals_lie_on_the_grid(rate):
    for index, at_ns in enumerate(due(constant(rate), arrivals.even(), 50)):
        assert abs(at_ns - Fraction(index * S) / Fraction(rate)) <= 1


@pytest.mark.parametrize("rate", [3.0, 7.0, 1_000.0 / 7, 500.0])
def test_constant_arrivals_do_not_drift(rate):
    at_ns = next(islice(arrivals.rescaled(constant(rate), arrivals.even()), 1_000_000, None))
    assert abs(at_ns - Fraction(1_000_000 * S) / Fraction(rate)) <= 1


@pytest.mark.parametrize("rate", [1.0, 50.0, 4_000.0, 1_000_000.0])
def test_as_many_constant_arrivals_as_rate_and_time_come_to(rate):
    times = arrivals.rescaled(constant(rate), arrivals.even())
    seconds = max(1, round(50_000 / rate))
    within = sum(1 for at_ns in islice(times, 1_100_000) if at_ns < seconds * S)
    assert within == seconds * rate


@pytest.mark.parametrize("curve", CURVES.values(), ids=CURVES)
@pytest.mark.parametrize("until_s", [100.0, 250.0, 500.0])
def test_as_many_even_arrivals_as_the_area_below_the_curve(curve, until_s):
    arrived = sum(1 for at_ns in due(curve, arrivals.even(), 30_000) if at_ns < until_s * S)
    assert arrived == pytest.approx(passed(curve, until_s), abs=1)
    assert arrived < 30_000


@pytest.mark.parametrize("seed", [0, 1, 42, 2**63])
def test_poisson_gaps_are_exponential_of_mean_one(seed):
    found = gaps(arrivals.poisson(Random(seed)))
    assert p_value(found, exponential()) > 0.001
    assert fmean(found) == pytest.approx(1, abs=4 / math.sqrt(DRAWS))


@pytest.mark.parametrize("smoothness", [0.25, 0.5, 1.0, 4.0, 100.0])
def test_gamma_gaps_have_their_shape_and_mean_one(smoothness):
    found = gaps(arrivals.gamma(smoothness, Random(5)))
    cv = 1 / math.sqrt(smoothness)
    assert p_value(found, gamma(smoothness)) > 0.001
    assert p_value(found, gamma(smoothness * 1.2)) < 0.001
    assert fmean(found) == pytest.approx(1, abs=4 * cv / math.sqrt(DRAWS))
    assert pstdev(found) == pytest.approx(cv, rel=0.06)


@pytest.mark.parametrize("curve", CURVES.values(), ids=CURVES)
@pytest.mark.parametrize("shape", [1.0, 0.5, 3.0])
def test_under_any_rate_the_area_between_arrivals_has_the_distribution_of_the_gaps(curve, shape):
    times = due(curve, arrivals.gamma(shape, Random(11)), 5_000)
    areas = [passed(curve, at_ns / S) for at_ns in times]
    assert p_value(gaps(areas), gamma(shape)) > 0.001


@pytest.mark.parametrize("curve", list(CURVES.values())[1:], ids=list(CURVES)[1:])
def test_under_a_rate_that_changes_the_gaps_themselves_are_not_exponential(curve):
    found = gaps([at_ns / S for at_ns in due(curve, arrivals.poisson(Random(11)), 10_000)])
    assert p_value(found, exponential(fmean(found))) < 0.001


@pytest.mark.parametrize("curve", CURVES.values(), ids=CURVES)
@given(seed=st.integers(0, 2**64 - 1), few=st.integers(1, 30), more=st.integers(31, 60))
def test_the_first_arrivals_do_not_depend_on_how_many_there_are(curve, seed, few, more):
    one, other = (due(curve, arrivals.poisson(Random(seed)), n) for n in (few, more))
    assert one == other[:few]
    assert other == sorted(other)
    assert other[0] >= 0


@given(
    seed=st.integers(0, 2**64 - 1),
    n=st.integers(1, 200),
    rate=st.sampled_from([0.5, 3.0, 7.0, 50.0, 1_000.0]),
    smoothness=st.floats(0.05, 50),
)
def test_conditioned_arrivals_end_at_n_over_rate_exactly(seed, n, rate, smoothness):
    free = list(islice(arrivals.gamma(smoothness, Random(seed)), n))
    found = list(arrivals.conditioned(iter(free), n))
    assert found[-1] == n
    assert [at * free[-1] / n for at in found] == pytest.approx(free)
    times = due(constant(rate), found, n)
    assert times == sorted(times)
    assert times[-1] == round(Fraction(n * S) / Fraction(rate))


def test_conditioned_arrivals_under_a_ramp_end_where_it_has_come_to_n():
    curve = ramp(0.0, 10.0, 20.0)
    *_, last = arrivals.rescaled(curve, arrivals.conditioned(arrivals.poisson(Random(1)), 400))
    assert last == 50 * S  # an area of 100 within the ramp, and 300 at 10 / s


def test_arrivals_without_gaps_are_conditioned_to_all_at_once():
    assert list(arrivals.conditioned(iter([0.0, 0.0]), 2)) == [0.0, 0.0]


@pytest.mark.parametrize("course", ["linear", "exponential"])
@pytest.mark.parametrize("smoothness", [0.5, 1.0, 4.0])
def test_by_index_every_gap_has_the_rate_of_its_number(course, smoothness):
    n, start, end = 5_000, 2.0, 80.0
    found = gaps(arrivals.by_index(ramp_of(start, end, course), n, smoothness, Random(3)), n)
    assert len(found) == n
    progress = [i / (n - 1) for i in range(n)]
    rates = [
        start * (end / start) ** p if course == "exponential" else start + (end - start) * p for p in progress
    ]
    scaled = [gap * rate for gap, rate in zip(found, rates, strict=True)]
    assert p_value(scaled, gamma(smoothness)) > 0.001
    assert p_value(found, gamma(smoothness, fmean(found))) < 0.001


def test_by_index_up_and_down_and_alone():
    up, down = (gaps(arrivals.by_index(ramp_of(*ends), 3, 1e6, Random(1)), 3) for ends in ((1, 4), (4, 1)))
    assert up == pytest.approx([1, 1 / 2.5, 1 / 4], rel=0.01)
    assert down == pytest.approx([1 / 4, 1 / 2.5, 1], rel=0.01)
    [alone] = arrivals.by_index(ramp_of(5, 9, "exponential"), 1, 1e6, Random(1))
    assert alone == pytest.approx(1 / 5, rel=0.01)


def test_the_due_times_of_before_for_the_same_seed():
    """Gaps that were drawn at the rate itself, to the nanosecond that rounding leaves."""
    for rate in (0.3, 10.0, 4_000.0):
        random, at_s = seeds.stream(1, "arrivals.measured"), 0.0
        for at_ns in due(constant(rate), arrivals.poisson(seeds.stream(1, "arrivals.measured")), 2_000):
            at_s += random.expovariate(rate)
            assert abs(at_ns - at_s * S) <= 1
        random, at_s = seeds.stream(1, "arrivals.measured"), 0.0
        for at_ns in due(constant(rate), arrivals.gamma(0.5, seeds.stream(1, "arrivals.measured")), 2_000):
            at_s += random.gammavariate(0.5, 1 / (rate * 0.5))
            assert abs(at_ns - at_s * S) <= 1


@pytest.mark.parametrize("rate", [1e-300, 1e6])
@pytest.mark.parametrize("smoothness", [1e-300, 1.0, 1e6])
def test_times_stay_within_64_bits_at_any_rate(rate, smoothness):
    def within(times):
        return all(0 <= at_ns <= arrivals.LATEST_NS for at_ns in times)

    drawn = list(islice(arrivals.gamma(smoothness, Random(1)), 100))
    positions = [list(islice(arrivals.even(), 100)), drawn, list(arrivals.conditioned(iter(drawn), 100))]
    for curve in (constant(rate), ramp(0, rate, 1e9), ramp(rate, rate / 2, 1e-9, "exponential")):
        assert all(within(due(curve, found, 100)) for found in positions)
    assert within(
        arrivals.in_ns(arrivals.by_index(ramp_of(rate, 1.0, "exponential"), 100, smoothness, Random(1)))
    )
