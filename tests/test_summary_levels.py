"""How many there were over time."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadstone.summary.levels import levels

SPANS = st.lists(st.tuples(st.integers(0, 10**10), st.integers(0, 10**10)), max_size=30)


def test_levels_are_means_weighted_by_time():
    came, went = np.array([0, 500_000_000]), np.array([1_500_000_000, 1_000_000_000])
    assert levels(came, went, np.array([0.0, 1.0, 2.0])).tolist() == [1.5, 0.5]


@given(SPANS)
def test_the_area_is_that_of_all_stays(spans):
    came = np.array([min(span) for span in spans], np.int64)
    went = np.array([max(span) for span in spans], np.int64)
    edges_s = np.linspace(0.0, 10.0, 8)
    area_s = (levels(came, went, edges_s) * np.diff(edges_s)).sum()
    assert area_s == pytest.approx((went - came).sum() / 1e9, abs=1e-6)
