from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadstone.metrics._sweep import MOST_STEPS, STEP_NS, Grid, levels, means

SPANS = st.lists(st.tuples(st.integers(0, 999), st.integers(0, 999), st.integers(1, 50)), min_size=1)


def columns(spans):
    """Begin, end and amount of each."""
    begin, end, amount = (np.array(column, np.int64) for column in zip(*spans, strict=True))
    return np.minimum(begin, end), np.maximum(begin, end), amount.astype(float)


@given(SPANS, st.sampled_from([1, 7, 10, 300, 1000]))
def test_a_grid_has_in_every_step_what_lies_in_it(spans, step):
    begin, end, amount = columns(spans)
    grid = Grid(1000, step)
    grid.add(begin, end, amount)
    by_ns = np.zeros(1000)
    for b, e, k in zip(begin, end, amount, strict=True):
        by_ns[b : max(e, b + 1)] += k / max(e - b, 1)
    expected = [by_ns[at : at + step].sum() for at in range(0, 1000, step)]
    assert grid.sums == pytest.approx(np.array(expected), abs=1e-9)
    assert grid.lasts_ns(1000).sum() == 1000


def test_a_gap_of_a_nanosecond_leaves_no_trace_beside_its_step():
    grid = Grid(100 * STEP_NS)
    edge = np.array([5 * STEP_NS - 1])
    grid.add(edge, edge + 2, np.array([1.0]))
    assert grid.sums.sum() == 1.0
    assert np.flatnonzero(grid.sums).tolist() == [4, 5]


@pytest.mark.parametrize(
    ("steps", "factor"), [(MOST_STEPS, 1), (MOST_STEPS + 1, 2), (3 * MOST_STEPS, 5), (99 * MOST_STEPS, 100)]
)
def test_a_long_window_has_longer_steps(steps, factor):
    grid = Grid(steps * STEP_NS)
    assert grid.step_ns == factor * STEP_NS
    assert len(grid.sums) <= MOST_STEPS


@given(SPANS)
def test_levels_are_the_count_at_every_moment(spans):
    came, went, rate = columns(spans)
    found = levels(came, went, (0, 1000), rate)
    assert found.lasted_ns.sum() == 1000
    at = np.repeat(found.number, found.lasted_ns.astype(int))
    rates = np.repeat(found.rate, found.lasted_ns.astype(int))
    for moment in (0, 1, 250, 500, 998):
        there = (came <= moment) & (moment < went)
        assert at[moment] == there.sum()
        assert rates[moment] == pytest.approx(rate[there].sum(), abs=1e-9)


@given(SPANS)
def test_means_are_the_area_between_edges(spans):
    came, went, _ = columns(spans)
    edges = np.array([0, 100, 450, 451, 1000])
    found = means(levels(came, went, (0, 1000)), 0, edges)
    areas = [sum(max(min(w, b) - max(c, a), 0) for c, w in zip(came, went, strict=True)) for a, b in pairwise(edges)]  # fmt: skip
    assert found * np.diff(edges) == pytest.approx(np.array(areas, float), abs=1e-6)
