"""Scrapes in memory, and as a table."""

from __future__ import annotations

import math
from array import array

import polars as pl

from loadstone.telemetry.parse import Page, Series
from loadstone.telemetry.store import COLUMNS, Scrape, Scrapes, write

SERIES = [Series("a", "counter", "a_total", "{}"), Series("b", "gauge", "b", '{"x":"1"}')]


def scrape(at, *values, kept=False):
    numbers = array("I", range(len(values)))
    return Scrape(at - 1, at, Page(numbers, array("d", values)), kept)


def test_a_table_has_one_row_a_sample(tmp_path):
    late = 2**53 + 1
    write(
        tmp_path,
        [
            ("one", SERIES, [scrape(10, 1.0, 2.0), scrape(late, 3.0)]),
            ("two", SERIES[:1], [scrape(5, math.nan)]),
        ],
    )
    table = pl.read_parquet(tmp_path / "server_metrics.parquet")
    assert tuple(table.columns) == COLUMNS
    assert table.rows()[:3] == [
        (10, 9, "one", "a", "counter", "a_total", "{}", 1.0),
        (10, 9, "one", "b", "gauge", "b", '{"x":"1"}', 2.0),
        (late, late - 1, "one", "a", "counter", "a_total", "{}", 3.0),
    ]
    assert table["target"].to_list() == ["one", "one", "one", "two"]
    assert math.isnan(table["value"][3])
    assert [path.name for path in tmp_path.iterdir()] == ["server_metrics.parquet"]


def test_without_a_scrape_there_is_no_table(tmp_path):
    write(tmp_path, [("one", [], [])])
    assert list(tmp_path.iterdir()) == []


def test_where_there_is_no_room_every_other_scrape_goes():
    scrapes = Scrapes(most_samples=20)
    for at in range(11):
        scrapes.add(scrape(at, 1.0, 2.0, kept=at == 3))
    assert [one.at_ns for one in scrapes.found] == [0, 2, 3, 4, 6, 8, 10]
    assert (scrapes.samples, scrapes.thinned, scrapes.every) == (14, 4, 2)


def test_room_is_bounded_even_where_every_scrape_is_next_to_a_phase():
    scrapes = Scrapes(most_samples=20)
    for at in range(100):
        scrapes.add(scrape(at, 1.0, 2.0, kept=True))
        assert scrapes.samples <= 20
    assert scrapes.found[0].at_ns == 0
    assert scrapes.found[-1].at_ns == 99
