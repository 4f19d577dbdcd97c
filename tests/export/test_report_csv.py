from __future__ import annotations

import csv
from pathlib import Path

import msgspec
import polars as pl

from loadstone.export import report_csv
from loadstone.report import MetricResult, Report


def written(report: Report, folder: Path, **metrics: MetricResult) -> Path:
    report_csv.write(msgspec.structs.replace(report, metrics=metrics), folder)
    return folder / "report.csv"


def test_one_row_for_every_number(valid: Report, tmp_path: Path) -> None:
    ttft = MetricResult(unit="ms", better="lower", count=3, mean=1.5, p99_9=2.25)
    rate = MetricResult(unit="requests/s", better="higher", count=3, mean=1e300)
    assert written(valid, tmp_path, ttft=ttft, rate=rate).read_text() == (
        "metric,unit,stat,value\n"
        "ttft,samples,count,3\n"
        "ttft,ms,mean,1.5\n"
        "ttft,ms,p99_9,2.25\n"
        "rate,samples,count,3\n"
        "rate,requests/s,mean,1e+300\n"
    )


def test_a_metric_without_numbers_has_an_empty_value(valid: Report, tmp_path: Path) -> None:
    ttft = MetricResult(unit="ms", better="lower", reason="the run did not stream.")
    assert written(valid, tmp_path, ttft=ttft).read_text().splitlines()[1:] == [
        "ttft,samples,count,0",
        "ttft,ms,mean,",
    ]


def test_any_reader_takes_the_values_as_numbers(valid: Report, tmp_path: Path) -> None:
    ttft = MetricResult(unit="ms", better="lower", count=1, mean=2.0)
    missing = MetricResult(unit="ms", better="lower", reason="nothing.")
    table = pl.read_csv(written(valid, tmp_path, a=ttft, b=missing))
    assert table["value"].to_list() == [1.0, 2.0, 0.0, None]


def test_a_name_cannot_become_a_formula(valid: Report, tmp_path: Path) -> None:
    metric = MetricResult(unit='@SUM("x"),\n', better="lower", mean=-1.0)
    path = written(valid, tmp_path, **{"=cmd|' /C calc'!A0": metric})
    with path.open(newline="") as file:
        assert list(csv.reader(file))[2] == ["'=cmd|' /C calc'!A0", '\'@SUM("x"),\n', "mean", "-1.0"]
