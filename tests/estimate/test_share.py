"""Intervals of shares."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadstone.estimate import LEAST
from loadstone.estimate.share import share, wilson


@pytest.mark.parametrize(
    ("hits", "n", "low", "high"),
    [(0, 10, 0.0, 0.2775), (1, 10, 0.0179, 0.4042), (5, 10, 0.2366, 0.7634), (10, 10, 0.7225, 1.0), (81, 263, 0.2553, 0.3662)],
)  # fmt: skip
def test_wilsons_values(hits, n, low, high):
    """81 of 263 is the example of Newcombe (1998)."""
    assert wilson(hits / n, n, 1.959964) == pytest.approx((low, high), abs=5e-5)


@given(st.lists(st.booleans(), min_size=LEAST, max_size=300))
def test_the_share_is_in_its_interval(hits):
    found = share(np.array(hits))
    assert 0 <= found.low <= np.mean(hits) <= found.high <= 1
    assert found.effective <= len(hits)


def test_without_a_miss_it_is_wilsons_with_all():
    found = share(np.ones(1_000, np.bool_))
    assert (found.low, found.high) == pytest.approx((1_000 / (1_000 + 1.959964**2), 1.0))


def test_hits_that_stand_alone_have_the_textbooks():
    mixed = np.random.default_rng(1).random(2_000) < 0.9
    found = share(mixed)
    assert (found.low, found.high) == pytest.approx(wilson(mixed.mean(), 2_000, 1.959964), abs=1e-6)
    assert found.effective == 2_000


def test_hits_that_come_together_tell_less():
    random = np.random.default_rng(1)
    mixed = random.random(3_200) < 0.5
    together = np.repeat(mixed[:320], 10)
    assert share(together).effective < share(mixed).effective / 4


def test_where_all_are_hits_the_values_tell_how_they_hang_together():
    steady = np.cumsum(np.random.default_rng(1).normal(0, 1, 1_000))
    all_met = np.ones(1_000, np.bool_)
    assert share(all_met, steady).low < 0.9 < 0.99 < share(all_met).low


def test_misses_in_the_crowds_of_a_skewed_load_reach_farther_down_than_hits_alone_would():
    waits = np.repeat(np.random.default_rng(4).exponential(1.0, 60) ** 2, 50)
    met = waits < 3
    plain, known = share(met), share(met, waits)
    assert known.low < plain.low
    assert known.high < plain.high


def test_too_few_have_none():
    assert share(np.ones(3, np.bool_)).reason == "there are 3 samples, and an interval takes 20."
