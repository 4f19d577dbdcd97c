"""Intervals of shares."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadstone.estimate import LEAST, clopper_pearson
from loadstone.estimate.share import share


@given(st.lists(st.booleans(), min_size=LEAST, max_size=300))
def test_the_share_is_in_its_interval(hits):
    found = share(np.array(hits))
    assert 0 <= found.low <= np.mean(hits) <= found.high <= 1
    assert found.effective <= len(hits)


def test_without_a_miss_it_is_the_rule_of_three():
    found = share(np.ones(1_000, np.bool_))
    assert (found.low, found.high) == pytest.approx((0.025 ** (1 / 1_000), 1.0))


def test_hits_that_stand_alone_have_the_textbooks():
    mixed = np.random.default_rng(1).random(2_000) < 0.9
    found = share(mixed)
    assert (found.low, found.high) == (
        clopper_pearson.low(mixed.mean(), 2_000),
        clopper_pearson.high(mixed.mean(), 2_000),
    )
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
    assert known.effective == plain.effective


def test_a_few_misses_count_no_more_than_the_crowds_of_the_values_allow():
    waits = np.cumsum(np.random.default_rng(4).normal(0, 1, 3_000))
    few = np.ones(3_000, np.bool_)
    few[::300] = False
    assert share(few, waits).low < 0.98 < 0.99 < share(few).low


def test_values_that_are_all_the_same_tell_nothing_not_even_by_rounding():
    none = np.zeros(400, np.bool_)
    assert share(none, np.full(400, 22.3)) == share(none)


def test_too_few_have_none():
    assert share(np.ones(3, np.bool_)).reason == "there are 3 samples, and an interval takes 20."
