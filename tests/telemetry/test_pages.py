"""What counters and gauges say of a stretch of time."""

from __future__ import annotations

import math

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadstone.telemetry.pages import Increase, Pages, Track, greatest, increase, mean_over_time
from loadstone.telemetry.parse import Parser
from loadstone.telemetry.store import Scrape, write

NAN = math.nan


def track(*values, at=None, took=1):
    at_ns = np.array(range(0, 10 * len(values), 10) if at is None else at, np.int64)
    return Track({}, at_ns - took, at_ns, np.array(values, np.float64))


def pages(folder, *texts, target="page"):
    """Pages that were read at 0, 10, 20 ... ns."""
    parser = Parser()
    scrapes = [Scrape(10 * n - 1, 10 * n, parser(text), False) for n, text in enumerate(texts)]
    write(folder, [(target, parser.series, scrapes)])
    return Pages.read(folder)[target]


# ---- counters ----


def test_a_counter_grew_from_the_read_before_to_the_read_after():
    assert increase(track(5, 7, 11, 20), 10, 19) == Increase(4.0, 0, 10, 20, True)
    assert increase(track(5, 7, 11, 20), 5, 21) == Increase(15.0, 0, 0, 30, True)


def test_a_page_that_was_asked_for_before_the_end_does_not_tell_of_the_end():
    assert increase(track(5, 7, 11, took=5), 0, 16) is not None
    assert increase(track(5, 7, 11, took=5), 0, 15) == Increase(6.0, 0, 0, 20, True)
    assert not increase(track(5, 7, 11, took=5), 0, 16).covers


def test_without_a_read_before_or_after_the_stretch_is_not_covered():
    assert increase(track(5, 7), -1, 5) == Increase(2.0, 0, 0, 10, False)
    assert increase(track(5, 7), 5, 15) == Increase(2.0, 0, 0, 10, False)
    assert increase(track(5), 0, 10) is None
    assert increase(track(5, 7), 11, 12) is None


def test_after_a_fall_a_counter_has_counted_from_nothing():
    assert increase(track(100, 110, 3, 5), 0, 25) == Increase(15.0, 1, 0, 30, True)


def test_a_series_that_was_not_there_yet_had_counted_nothing():
    assert increase(track(NAN, NAN, 4, 6), 0, 25).value == 6.0
    assert increase(track(NAN, NAN), 0, 9).value == 0.0


def test_a_value_that_is_missing_once_changes_nothing():
    assert increase(track(2, NAN, NAN, 9), 0, 25).value == 7.0
    assert increase(track(2, NAN, 5, 9), 10, 25).value == 7.0


@given(st.lists(st.integers(0, 1000), min_size=2, max_size=30), st.data())
def test_increases_of_stretches_that_meet_at_a_read_add_up(steps, data):
    counter = track(*np.cumsum(steps), took=0)
    cut = 10 * data.draw(st.integers(1, len(steps) - 1))
    end = 10 * (len(steps) - 1)
    parts = [increase(counter, *part) for part in ((0, cut), (cut, end)) if part[0] < part[1]]
    assert sum(part.value for part in parts) == increase(counter, 0, end).value == sum(steps[1:])


# ---- gauges ----


def test_a_gauge_keeps_its_value_until_the_next_read():
    gauge = track(1, 3, 5)
    assert mean_over_time(gauge, 0, 20) == 2.0
    assert mean_over_time(gauge, 5, 25) == (5 * 1 + 10 * 3 + 5 * 5) / 20
    assert mean_over_time(gauge, 25, 30) == 5.0


def test_a_gauge_that_was_not_read_before_is_not_known():
    assert mean_over_time(track(1, 3), -1, 20) is None
    assert mean_over_time(track(NAN, 3), 5, 20) is None
    assert mean_over_time(track(1, 3), 5, 5) is None


def test_the_greatest_value_is_one_that_was_read():
    assert greatest(track(9, 3, 5, 8), 10, 25) == 5.0
    assert greatest(track(9, 3, 5, 8), 5, 15) == 9.0
    assert greatest(track(9, NAN), 0, 15) == 9.0
    assert greatest(track(NAN, NAN), 0, 15) is None


# ---- reading ----


def test_tracks_have_a_value_for_every_scrape(tmp_path):
    read = pages(tmp_path, "a 1\n", 'b{x="1"} 2\na 3\n', "a 4\n")
    assert read.names == {"a", "b"}
    [a] = read.tracks("a")
    assert (a.at_ns.tolist(), a.values.tolist()) == ([0, 10, 20], [1.0, 3.0, 4.0])
    [b] = read.tracks("b")
    assert (b.labels, str(b.values.tolist())) == ({"x": "1"}, "[nan, 2.0, nan]")
    assert list(read.tracks("c")) == []


def test_a_folder_without_a_table_has_no_pages(tmp_path):
    assert Pages.read(tmp_path) == {}


def test_a_damaged_table_is_told(tmp_path):
    (tmp_path / "server_metrics.parquet").write_bytes(b"PAR1 no")
    with pytest.raises((pl.exceptions.PolarsError, OSError)):
        Pages.read(tmp_path)
