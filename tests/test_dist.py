from __future__ import annotations

import statistics

from hypothesis import given
from hypothesis import strategies as st

from loadstone.dist import draw, normal_length, uniform
from loadstone.plan.seeds import derive

seeds = st.integers(0, 2**63 - 1)
indices = st.integers(0, 2**40)


def test_a_draw_depends_on_seed_and_index_only() -> None:
    assert draw(42, 7, 4).hex() == "60875156"
    assert draw(42, 7, 8).startswith(draw(42, 7, 4))
    assert draw(4, 27, 4) != draw(42, 7, 4)


@given(seeds, indices)
def test_uniform_lies_strictly_between_0_and_1(seed: int, index: int) -> None:
    assert 0 < uniform(seed, index) < 1


def test_uniform_is_spread_evenly() -> None:
    tenths = [int(uniform(1, index) * 10) for index in range(10_000)]
    assert all(abs(tenths.count(tenth) - 1000) < 120 for tenth in range(10))


@given(seeds, indices, st.floats(1, 1e6), st.floats(0, 1e6))
def test_a_length_is_at_least_one_token(seed: int, index: int, mean: float, stddev: float) -> None:
    assert normal_length(seed, index, mean, stddev) >= 1


@given(seeds, indices, st.integers(1, 10**6))
def test_without_deviation_every_length_is_the_mean(seed: int, index: int, mean: int) -> None:
    assert normal_length(seed, index, mean, 0) == mean
    assert normal_length(seed, index, mean + 0.4, 0) == mean


def test_the_walk_through_has_the_means_asked_for() -> None:
    isl = [normal_length(derive(42, "isl"), index, 512, 128) for index in range(200)]
    osl = [normal_length(derive(42, "osl"), index, 128, 32) for index in range(200)]
    assert abs(statistics.mean(isl) - 512) < 28
    assert abs(statistics.mean(osl) - 128) < 20
    assert 110 < statistics.stdev(isl) < 146
    assert 26 < statistics.stdev(osl) < 38


def test_a_wide_bell_is_cut_not_heaped_at_one_token() -> None:
    lengths = [normal_length(1, index, 100, 100) for index in range(2000)]
    assert lengths.count(1) < 20
    assert min(lengths) == 1


def test_the_mean_stays_while_the_deviation_is_a_third_of_it() -> None:
    lengths = [normal_length(1, index, 300, 100) for index in range(20_000)]
    assert abs(statistics.mean(lengths) - 300) < 3
