"""Where answers end: every distribution by its draws."""

from __future__ import annotations

from statistics import fmean, median

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadstone.errors import UsageError
from loadstone.sim.lengths import even, parse

MANY = 1_000_000
TEXTS = ["even", "7", "normal:128+32", "lognormal:100+1", "exponential:50"]


def draws(text: str, count: int = 4000, fewest: int = 0, most: int = MANY) -> list[int]:
    return [parse(text)(0, draw, fewest, most) for draw in range(count)]


def test_even_fills_the_range_up_to_below_the_limit() -> None:
    assert set(draws("even", 200, 0, 5)) == {1, 2, 3, 4}
    assert set(draws("even", 200, 3, 5)) == {3, 4}
    assert [even(0, draw, 0, 1) for draw in range(3)] == [1, 1, 1]
    assert even(0, 3, 9, 9) == 9
    assert fmean(draws("even", most=101)) == pytest.approx(50.5, rel=0.03)


def test_a_number_is_every_length_that_the_limit_allows() -> None:
    assert set(draws(" 7 ", 10)) == {7}
    assert set(draws("7", 10, most=5)) == {5}
    assert set(draws("7", 10, fewest=9)) == {9}


def test_draws_have_the_mean_or_the_median_that_was_said() -> None:
    assert fmean(draws("normal:128+32")) == pytest.approx(128, rel=0.02)
    assert median(draws("lognormal:100+1")) == pytest.approx(100, rel=0.06)
    assert fmean(draws("exponential:50")) == pytest.approx(50, rel=0.05)
    assert set(draws("normal:128+0", 10)) == {128}
    assert set(draws("lognormal:100+0", 10)) == {100}


def test_the_seed_and_the_request_decide() -> None:
    drawn = parse("normal:128+32")
    assert drawn(1, 5, 0, MANY) == drawn(1, 5, 0, MANY)
    assert [drawn(1, draw, 0, MANY) for draw in range(9)] != [drawn(2, draw, 0, MANY) for draw in range(9)]


@given(
    st.sampled_from(TEXTS),
    st.integers(0, 2**64),
    st.integers(0, 2**32),
    st.integers(0, 50),
    st.integers(1, 50),
)
def test_no_draw_is_outside_the_bounds(text: str, seed: int, draw: int, fewest: int, more: int) -> None:
    most = fewest + more
    assert max(fewest, 1) <= parse(text)(seed, draw, fewest, most) <= most


@pytest.mark.parametrize(
    "text",
    [
        "", "odd", "0", "-1", "1.5", "nan", "1e9", "even:3", "normal", "normal:128", "normal:128+32+1", "normal:0+1",
        "normal:128+-1", "lognormal:1+inf", "lognormal:1+21", "exponential:", "exponential:0", "exponential:1+1",
        "fixed:3", "+", "٣", "normal:1_0+x",
    ],
)  # fmt: skip
def test_what_is_no_distribution_is_refused_with_the_forms(text: str) -> None:
    with pytest.raises(UsageError) as refused:
        parse(text)
    assert str(refused.value) == (
        f"output_tokens = {text}: must be even, N, normal:MEAN+STD, lognormal:MEDIAN+SIGMA or exponential:MEAN, such as"
        " normal:128+32; of at most 1,000,000 tokens."
    )
