"""What holds for every exporter, found through the registry; and the files of a whole run."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from loadstone import export
from loadstone.registry import load, names
from loadstone.report import Report

NAMES = names("export")


@pytest.mark.parametrize("name", NAMES)
def test_an_exporter_says_what_it_is_and_writes_nothing_on_import(name: str) -> None:
    module: Any = load("export", name)
    assert module.ROLE and module.FILE and Path(module.FILE).name == module.FILE
    assert callable(module.wanted) and callable(module.write)
    assert module.__doc__


@pytest.mark.parametrize("field", ["ROLE", "FILE"])
def test_no_two_exporters_share_a_role_or_a_file(field: str) -> None:
    taken = [getattr(load("export", name), field) for name in NAMES]
    assert len(set(taken)) == len(taken) == 6


def test_every_output_is_written_and_listed_by_role(
    valid: Report, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(export, "names", lambda kind: ("console", "report-csv", "report-json"))
    run = msgspec.structs.replace(valid.run, files={"config": "config.toml"})
    listed = export.write_all(msgspec.structs.replace(valid, run=run), tmp_path)
    assert listed.run.files == {
        "summary": "summary.txt", "table": "report.csv", "report": "report.json", "config": "config.toml"
    }  # fmt: skip
    assert {path.name for path in tmp_path.iterdir()} == {"summary.txt", "report.csv", "report.json"}
    assert msgspec.json.decode((tmp_path / "report.json").read_bytes(), type=Report) == listed


def test_a_file_is_replaced_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    path.write_text("before")
    with pytest.raises(OSError, match="disk"), export.replacing(path) as file:
        file.write(b"half of wh")
        raise OSError("disk full")
    assert path.read_text() == "before"
    assert list(tmp_path.iterdir()) == [path]
    with export.replacing(path) as file:
        file.write(b"after")
    assert path.read_text() == "after"


def test_looking_at_a_run_costs_neither_numpy_nor_polars() -> None:
    modules = [f"loadstone.export.{name.replace('-', '_')}" for name in NAMES] + ["loadstone.tui.simple"]
    program = f"import sys, {', '.join(modules)}; print({{'numpy', 'polars'}} & set(sys.modules))"
    assert subprocess.check_output([sys.executable, "-c", program], text=True) == "set()\n"
