"""Lines from moments: nothing is lost in a bin, levels are exact, what is thinned keeps what is rare."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadstone.plot._series import (
    MOST_BINS,
    MOST_ROWS,
    bin_s,
    edges,
    level,
    moments,
    per_second,
    running_median,
    stretch_s,
    thinned,
)

S = 1_000_000_000
MOMENTS = st.lists(st.integers(2**53, 2**53 + 3600 * S), min_size=1, max_size=200).map(sorted)


@pytest.mark.parametrize(
    ("span_s", "events", "width_s"),
    [
        (20, 200, 0.5),
        (20, 190, 1),
        (30, 120_000, 0.5),
        (3600, 36_000, 60),
        (0.01, 200, 0.0005 * 2),
        (5, 3, 0.5),
        (0, 5, 1),
        (40 * 86_400, 10**7, 86_400 * 0.75),
    ],
)
def test_bins_are_round_and_neither_too_many_nor_too_empty(span_s, events, width_s):
    assert bin_s(span_s, events) == pytest.approx(width_s)


@given(MOMENTS)
def test_every_event_is_counted_once_and_bins_are_few(found):
    times = np.array(found)
    width_s = bin_s((found[-1] - found[0]) / 1e9, len(found))
    cuts = edges(found[0], found[-1], len(found), width_s)
    line = per_second(times, cuts, found[0])
    counted = line["rate"].to_numpy()[:-1] * np.diff(cuts) / 1e9
    assert round(float(counted.sum())) == len(found)
    assert len(line) <= MOST_BINS + 3
    assert line["rate"].to_list()[-1] == line["rate"].to_list()[-2]


@given(st.integers(1, 40), st.integers(0, 10_000))
def test_a_constant_rate_is_flat_however_its_sends_tremble(per_s, seed):
    gap_ns = S // per_s
    trembling = np.random.default_rng(seed).integers(0, gap_ns // 10, per_s * 20)
    times = np.arange(per_s * 20) * gap_ns + trembling
    line = per_second(times, edges(int(times[0]), int(times[-1]), len(times), 1.0), 0)
    *whole, last, same = line["rate"].to_list()
    assert whole == [per_s] * (len(line) - 2)
    assert last == same == pytest.approx(per_s, rel=0.2)


def test_a_rate_that_changes_is_seen_where_it_changes():
    times = np.concatenate((np.arange(0, 10 * S, S // 10), np.arange(10 * S, 20 * S, S // 20)))
    line = per_second(times, edges(0, int(times[-1]), len(times), 1.0), 0)
    rates = line["rate"].to_list()
    assert rates[:9] == [10] * 9
    assert rates[10:19] == [20] * 9


def test_moments_are_in_order_and_known():
    assert moments(pl.Series([3, None, 1], dtype=pl.Int64)).tolist() == [1, 3]


def test_few_steps_are_all_shown():
    line = level(np.array([10 * S, 11 * S]), np.array([12 * S, 12 * S]), 10 * S, None)
    assert line.rows() == [(0.0, 1.0), (1.0, 2.0), (2.0, 0.0)]


def test_many_steps_become_means_of_round_stretches():
    came = np.arange(0, 1000 * S, S)
    went = came + S // 2
    over_s = stretch_s(came, went)
    line = level(came, went, 0, over_s)
    assert over_s == 10
    assert len(line) == 101
    assert line["seconds"].to_list()[:3] == [0, 10, 20]
    assert line["level"].to_list() == pytest.approx([0.5] * 101, abs=0.03)
    assert stretch_s(came[:50], went[:50]) is None


def test_the_median_runs_over_all_points():
    points = pl.DataFrame({"seconds": [float(i) for i in range(100)], "latency": [1.0, 5.0, 3.0, 100.0] * 25})
    medians = running_median(points, "latency")
    assert medians["seconds"].to_list() == [float(i) for i in range(7, 93)]
    assert set(medians["latency"]) == {3.0, 5.0}
    assert running_median(points.head(0), "latency").is_empty()
    assert running_median(points.head(1), "latency")["latency"].to_list() == [1.0]


@given(st.integers(1, 30_000))
def test_the_median_of_a_trend_is_the_trend_up_to_the_ends_of_the_line(count):
    points = pl.DataFrame(
        {"seconds": np.arange(count, dtype=float), "latency": np.arange(count, dtype=float)}
    )
    medians = running_median(points, "latency")
    assert medians["latency"].to_list() == medians["seconds"].to_list()
    assert 1 <= len(medians) < 800
    assert medians["seconds"][0] <= min(7, count // 4)
    assert medians["seconds"][-1] >= count - 9 - count // 400


@given(st.integers(1, 30_000))
def test_thinning_is_bounded_even_and_keeps_the_slowest(count):
    points = pl.DataFrame({"seconds": np.arange(count, dtype=float), "latency": np.ones(count)})
    slow = points.with_columns(latency=pl.when(pl.col("seconds") == count - 2).then(9.0).otherwise("latency"))
    kept = thinned(slow, "latency")
    assert len(kept) <= MOST_ROWS
    assert kept["seconds"].is_sorted()
    assert (count < 2) or kept["latency"].max() == 9.0
    assert count > MOST_ROWS or kept.equals(slow)
