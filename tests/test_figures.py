from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadstone.figures import brief, counted, figures


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, "-"),
        (math.nan, "-"),
        (math.inf, "-"),
        (0, "0"),
        (57, "57.0"),
        (5.704, "5.70"),
        (0.05704, "0.0570"),
        (0.0004, "4.00e-04"),
        (99.96, "100"),
        (999.6, "1,000"),
        (1337, "1,340"),
        (-1337, "-1,340"),
        (999_499, "999,000"),
        (999_500, "1.00M"),
        (12_345_678, "12.3M"),
        (4.567e9, "4.57G"),
        (1e300, "1.00e+300"),
    ],
)
def test_three_significant_figures(value: float | None, shown: str) -> None:
    assert figures(value) == shown


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (57, "57"),
        (0.8716, "0.872"),
        (0, "0"),
        (999.4, "999"),
        (999.6, "1,000"),
        (1337, "1,340"),
        (2.5e6, "2,500,000"),
    ],
)
def test_figures_in_a_sentence(value: float, shown: str) -> None:
    assert brief(value) == shown


@given(st.floats(min_value=1e-3, max_value=999_000))
def test_what_is_shown_is_within_half_a_percent(value: float) -> None:
    assert float(figures(value).replace(",", "")) == pytest.approx(value, rel=0.00501)


@given(st.floats())
def test_a_number_never_takes_more_than_ten_cells(value: float) -> None:
    assert len(figures(value)) <= 10


def test_a_noun_follows_its_number() -> None:
    assert [counted(1, "request"), counted(1200, "request")] == ["1 request", "1,200 requests"]
