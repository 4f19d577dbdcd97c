"""Rates over time: known areas, and an inverse that is one."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadstone.plan.rate import Segment, constant, moments, passed, ramp, series, when

RATES = st.floats(0.1, 1_000)
SPANS = st.floats(0.01, 1_000)
COURSES = st.sampled_from(["linear", "exponential"])
MOMENTS = st.floats(0, 3_000)
PARTS = st.floats(0, 1.5)


@st.composite
def broken_lines(draw, rates=RATES):
    """Series of up to eight points, the last of them with a rate."""
    gaps = draw(st.lists(st.one_of(st.just(0.0), SPANS), min_size=1, max_size=8))
    times = [sum(gaps[: n + 1]) for n in range(len(gaps))]
    return series([*((at_s, draw(rates)) for at_s in times[:-1]), (times[-1], draw(RATES))])


def nearly_flat(rate, span_s, course, ulps):
    """A ramp whose ends differ by a few units in the last place."""
    end = rate
    for _ in range(abs(ulps)):
        end = math.nextafter(end, math.inf if ulps > 0 else 0.0)
    return ramp(rate, end, span_s, course)


CURVES = st.one_of(
    st.builds(constant, RATES),
    st.builds(ramp, RATES, RATES, SPANS, COURSES),
    st.builds(nearly_flat, RATES, SPANS, COURSES, st.integers(-9, 9)),
    broken_lines(),
)


@given(CURVES, MOMENTS)
def test_the_inverse_of_the_integral(curve, t_s):
    assert when(curve, passed(curve, t_s)) == pytest.approx(t_s, rel=1e-9, abs=1e-12)


@given(CURVES, PARTS)
def test_the_integral_of_the_inverse(curve, part):
    n = part * (passed(curve, curve[-1].start_s + curve[-1].span_s) + 1)
    assert passed(curve, when(curve, n)) == pytest.approx(n, rel=1e-9, abs=1e-12)


@given(broken_lines(st.one_of(st.just(0.0), RATES)), PARTS)
def test_the_integral_of_the_inverse_where_the_rate_may_be_0(curve, part):
    n = part * (passed(curve, curve[-1].start_s) + 1)
    assert passed(curve, when(curve, n)) == pytest.approx(n, rel=1e-9, abs=1e-9)


@given(st.floats(0.001, 1_000), SPANS, COURSES, PARTS, st.booleans())
def test_ramps_over_many_powers_of_ten_up_and_down(rate, span_s, course, part, up):
    curve = ramp(rate * 1e-9, rate, span_s, course) if up else ramp(rate, rate * 1e-9, span_s, course)
    n = part * passed(curve, span_s)
    assert passed(curve, when(curve, n)) == pytest.approx(n, rel=1e-9)


@given(CURVES, st.lists(st.floats(0, 5_000), max_size=20).map(sorted))
def test_positions_in_order_have_moments_in_order_and_one_by_one_the_same(curve, positions):
    found = list(moments(curve, positions))
    assert found == sorted(found)
    assert found == [when(curve, n) for n in positions]


@given(CURVES, MOMENTS, MOMENTS)
def test_the_integral_never_goes_back(curve, one, other):
    assert passed(curve, min(one, other)) <= passed(curve, max(one, other)) * (1 + 1e-12)


def test_known_areas():
    assert passed(constant(4), 2.5) == 10
    assert [passed(ramp(0, 10, 5), t) for t in (0, 1, 5, 7)] == [0, 1, 25, 45]
    assert [passed(ramp(10, 0, 5), t) for t in (1, 5, 99)] == [9, 25, 25]
    assert passed(ramp(1, math.e, 1, "exponential"), 1) == pytest.approx(math.e - 1, rel=1e-15)
    assert passed(ramp(1, math.e, 1, "exponential"), 3) == pytest.approx(3 * math.e - 1, rel=1e-15)
    assert passed(series([(2, 3), (4, 5)]), 6) == 6 + 8 + 10


def test_known_moments():
    assert when(constant(4), 10) == 2.5
    assert when(ramp(0, 10, 5), 1) == 1
    assert when(ramp(0, 10, 5), 45) == 7
    assert when(ramp(10, 0, 5), 9) == 1
    assert when(ramp(1, math.e, 1, "exponential"), math.e - 1) == pytest.approx(1, rel=1e-15)
    assert when(series([(2, 3), (4, 5)]), 6) == 2


def test_the_rate_of_an_exponential_ramp_grows_by_the_same_factor_in_the_same_time():
    curve = ramp(2, 32, 8, "exponential")
    areas = [passed(curve, t + 2) - passed(curve, t) for t in (0, 2, 4, 6)]
    assert [b / a for a, b in pairwise(areas)] == pytest.approx([2, 2, 2])


def test_nothing_arrives_within_a_stretch_without_rate():
    curve = series([(0, 0), (10, 0), (10, 5), (12, 5), (12, 0), (20, 0), (20, 1)])
    assert [when(curve, n) for n in (0, 5, 9.999, 10, 11)] == pytest.approx([10, 11, 11.9998, 20, 21])
    assert when(curve, 10) == 20


@pytest.mark.parametrize(
    "curve", [ramp(10, 0, 5), series([(0, 10), (5, 0)]), series([(0, 5), (5, 5), (5, 0)])]
)
def test_a_rate_that_ends_at_0_never_comes_to_more_than_its_area(curve):
    assert passed(curve, 1e9) == 25
    assert when(curve, 24.999999) <= 5
    assert when(curve, 25) == math.inf
    assert list(moments(curve, [25, 26])) == []


def test_a_segment_stays_at_its_end_until_the_next_one_begins():
    held = (
        Segment(start_s=0.0, rate=0.0, end_rate=4.0, span_s=2.0),
        Segment(start_s=5.0, rate=1.0, end_rate=9.0, span_s=8.0),
    )
    assert [passed(held, t) for t in (2, 5, 13, 14)] == [4, 16, 56, 65]
    assert [when(held, n) for n in (4, 16, 56, 65)] == [2, 5, 13, 14]


def test_a_segment_is_cut_off_by_the_next_one():
    cut = (
        Segment(start_s=0.0, rate=0.0, end_rate=4.0, span_s=4.0),
        Segment(start_s=2.0, rate=10.0, end_rate=10.0),
    )
    assert [passed(cut, t) for t in (2, 3)] == [2, 12]
    assert [when(cut, n) for n in (2, 12)] == [2, 3]


def test_before_its_first_segment_there_is_no_rate():
    late = (Segment(start_s=3.0, rate=2.0, end_rate=2.0),)
    assert [passed(late, t) for t in (-1, 0, 3, 4)] == [0, 0, 0, 2]
    assert [when(late, n) for n in (0, 2)] == [3, 4]


def test_without_a_segment_there_is_no_rate_either():
    assert passed((), 9) == 0
    assert when((), 0) == math.inf


def test_the_curves_that_are_made():
    assert ramp(1, 2, 3) == (Segment(start_s=0.0, rate=1, end_rate=2, span_s=3),)
    assert series([(0, 7)]) == constant(7)
    assert series([(1, 7), (3, 9)]) == (
        Segment(start_s=0.0, rate=7, end_rate=7),
        Segment(start_s=1, rate=7, end_rate=9, span_s=2),
        Segment(start_s=3, rate=9, end_rate=9),
    )


@pytest.mark.parametrize("points", [[], [(1, 2), (0, 3)]])
def test_a_series_that_is_none(points):
    with pytest.raises(ValueError, match="must have points"):
        series(points)


@pytest.mark.parametrize(("start", "end"), [(0, 1), (1, 0)])
def test_an_exponential_neither_begins_nor_ends_at_0(start, end):
    with pytest.raises(ValueError, match="both ends must be above 0"):
        ramp(start, end, 9, "exponential")
