from __future__ import annotations

import csv
import math
from pathlib import Path

import msgspec
import polars as pl
import pytest

from loadstone.export import report_csv
from loadstone.report import Group, MetricResult, Report


def written(report: Report, folder: Path, **metrics: MetricResult) -> Path:
    report_csv.write(msgspec.structs.replace(report, metrics=metrics), folder)
    return folder / "report.csv"


def test_one_row_for_every_number(valid: Report, tmp_path: Path) -> None:
    ttft = MetricResult(unit="ms", better="lower", count=3, mean=1.5, p99_9=2.25)
    rate = MetricResult(unit="requests/s", better="higher", count=3, mean=1e300)
    assert written(valid, tmp_path, ttft=ttft, rate=rate).read_text() == (
        "metric,unit,stat,value,part\n"
        "ttft,samples,count,3,\n"
        "ttft,ms,mean,1.5,\n"
        "ttft,ms,p99_9,2.25,\n"
        "rate,samples,count,3,\n"
        "rate,requests/s,mean,1e+300,\n"
    )


def test_parts_of_which_there_are_several_have_rows_of_their_own(valid: Report, tmp_path: Path) -> None:
    def counted(count: int) -> dict[str, MetricResult]:
        return {"ttft": MetricResult(unit="ms", better="lower", count=count, mean=1.5)}

    phases = tuple(
        msgspec.structs.replace(valid.phases[0], name=name, metrics=counted(n))
        for n, name in enumerate(("warmup", "=cmd"))
    )
    targets = tuple(Group(name=f"http://{n}", planned=n, counts={}, metrics=counted(n)) for n in (7, 8))
    several = msgspec.structs.replace(valid, phases=phases, targets=targets)
    lines = written(several, tmp_path, **counted(9)).read_text().splitlines()[1:]
    assert lines[::2] == [
        "ttft,samples,count,9,",
        "ttft,samples,count,0,phase warmup",
        "ttft,samples,count,1,phase =cmd",
        "ttft,samples,count,7,target http://7",
        "ttft,samples,count,8,target http://8",
    ]


def test_a_metric_without_numbers_has_an_empty_value(valid: Report, tmp_path: Path) -> None:
    ttft = MetricResult(unit="ms", better="lower", reason="the run did not stream.")
    assert written(valid, tmp_path, ttft=ttft).read_text().splitlines()[1:] == [
        "ttft,samples,count,0,",
        "ttft,ms,mean,,",
    ]


def test_what_was_cut_off_has_rows_of_its_own(valid: Report, tmp_path: Path) -> None:
    curve = {"p50": 5.0, "p99": None, "p99_9": None}
    ttft = MetricResult(
        unit="ms",
        better="lower",
        count=3,
        mean=1.5,
        cut_off=4,
        censored=2,
        with_censored=curve,
        with_censored_least=9.0,
    )
    assert written(valid, tmp_path, ttft=ttft).read_text().splitlines()[3:] == [
        "ttft,samples,cut_off,4,",
        "ttft,samples,censored,2,",
        "ttft,ms,km_p50,5.0,",
        "ttft,ms,km_least,9.0,",
    ]
    growing = msgspec.structs.replace(ttft, with_censored_at_least=True)
    assert written(valid, tmp_path, ttft=growing).read_text().splitlines()[5:] == [
        "ttft,ms,km_at_least_p50,5.0,",
        "ttft,ms,km_least,9.0,",
    ]


def test_a_number_that_is_none_is_never_written(valid: Report, tmp_path: Path) -> None:
    odd = MetricResult(unit="ms", better="lower", count=1, mean=math.nan, max=math.inf, p50=2.0)
    assert written(valid, tmp_path, odd=odd).read_text().splitlines()[1:] == [
        "odd,samples,count,1,",
        "odd,ms,p50,2.0,",
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
        assert list(csv.reader(file))[2] == ["'=cmd|' /C calc'!A0", '\'@SUM("x"),\\x0a', "mean", "-1.0", ""]


@pytest.mark.parametrize("mark", report_csv.FORMULA_MARKS)
def test_no_mark_of_a_formula_begins_a_cell(mark: str, valid: Report, tmp_path: Path) -> None:
    metric = MetricResult(unit=f"{mark}1+1", better="lower", mean=1.0)
    with written(valid, tmp_path, **{f"{mark}cmd": metric}).open(newline="") as file:
        rows = list(csv.reader(file))[1:]
    assert {(name, unit) for name, unit, *_ in rows} == {
        (f"'{mark}cmd", "samples"),
        (f"'{mark}cmd", f"'{mark}1+1"),
    }


@pytest.mark.parametrize("break_", ["\r", "\n", "\r\n", "\t", "\x1b[2J", "\u2028"])
def test_no_name_breaks_its_row_or_moves_a_cursor(break_: str, valid: Report, tmp_path: Path) -> None:
    metric = MetricResult(unit=f"a{break_}=1", better="lower", mean=1.0)
    path = written(valid, tmp_path, **{f"m{break_}=cmd": metric})
    assert not set("\r\t\x1b\u2028") & set(path.read_bytes().decode())
    with path.open(newline="") as file:
        assert [len(row) for row in csv.reader(file)] == [5, 5, 5]


def test_what_is_infinite_is_a_number_and_not_missing(valid: Report, tmp_path: Path) -> None:
    endless = MetricResult(
        unit="ms", better="lower", count=4, min=3.0, p50=4.0, infinite=("mean", "max", "std", "p99")
    )
    text = written(valid, tmp_path, adjusted_request_latency=endless).read_text()
    rows = csv.DictReader(text.splitlines())
    told = {row["stat"]: row["value"] for row in rows}
    assert told == {
        "count": "4",
        "mean": "inf",
        "min": "3.0",
        "max": "inf",
        "std": "inf",
        "p50": "4.0",
        "p99": "inf",
    }
