from __future__ import annotations

import json
import math
from pathlib import Path

import msgspec
import pytest

from loadstone.export import report_json
from loadstone.report import SCHEMA_VERSION, MetricResult, Report


def written(report: Report, folder: Path) -> dict[str, object]:
    report_json.write(report, folder)

    def refuse(token: str) -> None:
        raise AssertionError(f"{token} is not JSON")

    tree: dict[str, object] = json.loads((folder / "report.json").read_bytes(), parse_constant=refuse)
    return tree


def test_the_tree_is_written_whole_under_its_version(valid: Report, tmp_path: Path) -> None:
    tree = written(valid, tmp_path)
    assert tree["schema_version"] == SCHEMA_VERSION
    assert msgspec.convert(tree, Report) == valid


def test_a_metric_without_numbers_is_null_with_its_reason(valid: Report, tmp_path: Path) -> None:
    metric = MetricResult(unit="ms", better="lower", reason="the run did not stream.")
    tree = written(msgspec.structs.replace(valid, metrics={"time_to_first_token": metric}), tmp_path)
    ttft = tree["metrics"]["time_to_first_token"]  # type: ignore[index]
    assert (ttft["mean"], ttft["p99_9"], ttft["count"], ttft["reason"]) == (
        None,
        None,
        0,
        "the run did not stream.",
    )


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_what_json_cannot_say_is_null(valid: Report, tmp_path: Path, value: float) -> None:
    metric = MetricResult(unit="ms", better="lower", mean=value)
    tree = written(msgspec.structs.replace(valid, metrics={"m": metric}), tmp_path)
    assert tree["metrics"]["m"]["mean"] is None  # type: ignore[index]


def test_huge_numbers_come_back_as_they_were(valid: Report, tmp_path: Path) -> None:
    metric = MetricResult(unit="ms", better="lower", mean=1.7976931348623157e308, min=5e-324)
    tree = written(msgspec.structs.replace(valid, metrics={"m": metric}), tmp_path)
    assert tree["metrics"]["m"]["mean"] == 1.7976931348623157e308  # type: ignore[index]
    assert tree["metrics"]["m"]["min"] == 5e-324  # type: ignore[index]


def test_hostile_words_come_back_as_they_were_and_move_no_cursor(
    hostile: str, valid: Report, tmp_path: Path
) -> None:
    fault = {"outcome": "http-error", "message": hostile, "count": 1, "sample": None}
    outcomes = msgspec.structs.replace(
        valid.outcomes, faults=(fault,), not_sent=({"reason": hostile, "count": 1},)
    )
    run = msgspec.structs.replace(valid.run, stopped_why=hostile, notices=(hostile,), command=hostile)
    report = msgspec.structs.replace(
        valid, run=run, outcomes=outcomes, config={hostile: hostile}, environment={"server": hostile}
    )
    tree = written(report, tmp_path)
    assert msgspec.convert(tree, Report) == report
    assert not set("\x1b\x07\r") & set((tmp_path / "report.json").read_text())
