"""The intervals in the summary and in `report.csv`."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from loadstone.export import report_csv
from loadstone.export._intervals import about_intervals, intervals
from loadstone.export._span import span
from loadstone.export._tables import about_thin, rates
from loadstone.export.console import render
from loadstone.report import Interval, MetricResult, Report

FEW = "values that high came in too few separate bursts; about 5,000 requests such as these would tell."


def between(low: float | None, high: float | None, reason: str | None = None) -> Interval:
    return Interval(low=low, high=high, method="order statistics", reason=reason)


@pytest.fixture
def metrics(valid: Report) -> dict[str, MetricResult]:
    latency = {
        "mean": between(1300, 1450),
        "p50": between(1320, 1350),
        "p90": between(1400, 1600),
        "p95": between(1500, 1900),
        "p99": between(1900, None, FEW),
        "p99_9": between(None, None, "there are too few."),
    }
    rate = {"mean": between(9.71, 10.04)}
    own = valid.metrics
    return own | {
        "request_latency": replace(own["request_latency"], intervals=latency),
        "request_throughput": replace(own["request_throughput"], intervals=rate),
    }


def test_a_narrow_screen_has_short_names(metrics):
    assert intervals(metrics, 60)[1].split()[:2] == ["latency", "ms"]


@pytest.mark.parametrize(
    ("width", "stats"),
    [
        (50, ["p50", "p99"]),
        (72, ["mean", "p50", "p99"]),
        (80, ["mean", "p50", "p90", "p99"]),
        (100, ["mean", "p50", "p90", "p95", "p99", "p99.9"]),
    ],
)
def test_there_are_as_many_columns_as_fit(metrics, width, stats):
    table = intervals(metrics, width)
    assert table[0].removeprefix("95 % intervals").split() == stats
    assert all(len(line) <= width for line in table)


def test_an_interval_stands_below_its_statistic(metrics):
    assert intervals(metrics, 72) == [
        "95 % intervals                mean             p50       p99",
        "request latency ms  1,300 to 1,450  1,320 to 1,350  >= 1,900",
    ]


def test_a_mark_is_told_where_it_is_shown(metrics):
    assert list(about_intervals(metrics, 80)) == [f">= request latency p99: {FEW}"]
    assert list(about_intervals(metrics, 100)) == [
        f">= request latency p99: {FEW}",
        "? request latency p99.9: there are too few.",
    ]


def test_a_rate_has_its_interval_behind_it(metrics):
    assert any(line.endswith("9.87 requests/s [9.71 to 10.0]") for line in rates(metrics, 80))


def test_where_there_is_no_room_for_intervals_the_rates_stand_alone(metrics):
    wide, narrow = ([line for line in rates(metrics, width) if "9.87" in line] for width in (60, 40))
    assert wide[0].endswith("requests/s [9.71 to 10.0]")
    assert narrow[0].endswith("9.87 requests/s")


def test_without_intervals_nothing_is_shown(valid):
    assert intervals(valid.metrics, 100) == []
    assert list(about_intervals(valid.metrics, 100)) == []
    assert "95 %" not in render(valid, width=100, color=False)


def test_they_are_in_the_summary(valid, metrics):
    assert "\n".join(intervals(metrics, 100)) in render(
        replace(valid, metrics=metrics), width=100, color=False
    )


@pytest.mark.parametrize(
    ("interval", "cell"),
    [
        (None, ""),
        (between(1.0, 2.5), "1.00 to 2.50"),
        (between(3.0, None), ">= 3.00"),
        (between(None, None), "?"),
    ],
)
def test_the_cell_of_an_interval(interval, cell):
    assert span(interval) == cell


def test_a_thin_percentile_tells_what_it_takes(valid):
    thin = {"request_latency": replace(valid.metrics["request_latency"], thin=("p1", "p99", "p99_9"))}
    assert about_thin(thin) == (
        "~ too few samples for this percentile: p99 takes 1,000, and request latency has 200"
    )
    assert about_thin(valid.metrics) == "~ too few samples for this percentile"


def test_the_ends_have_rows_in_the_table(valid: Report, metrics, tmp_path: Path) -> None:
    report_csv.write(replace(valid, metrics=metrics), tmp_path)
    rows = (tmp_path / "report.csv").read_text().splitlines()
    assert "request_latency,ms,p50_low,1320," in rows
    assert "request_latency,ms,p50_high,1350," in rows
    assert "request_latency,ms,p99_low,1900," in rows
    assert not any(",p99_high," in row or ",p99_9_low," in row for row in rows)
