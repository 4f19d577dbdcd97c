"""`loadstone calibrate`, and what reports make of it."""

from __future__ import annotations

import json

import pytest

from loadstone.cli.entry import enter
from loadstone.study import calibrate


@pytest.fixture(autouse=True)
def quick(monkeypatch, tmp_path):
    """Whatever comes about on a busy machine is enough to see that it works."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setattr(calibrate, "REPEATS", 1)
    monkeypatch.setattr(calibrate, "LEAST_FLIGHTS", 5)
    monkeypatch.setattr(calibrate, "LEAST_READS", 5)


def test_what_was_measured_is_kept_and_told_in_the_next_report(tmp_path, capsys):
    assert enter(["calibrate", "--duration", "0.5"]) == 0
    kept = json.loads((tmp_path / "state" / "loadstone" / "ceiling.json").read_text())
    assert kept["request_us"] > kept["token_us"] > 0
    shown = capsys.readouterr()
    assert "requests/s, or" in shown.out
    assert shown.out.endswith("ceiling.json\n")
    home = tmp_path / "run"
    words = "profile --url sim: --concurrency 2 --isl 8 --osl 4 --request-count 6 --ui none --artifact-dir"
    assert enter([*words.split(), str(home)]) == 0
    report = json.loads((home / "report.json").read_text())
    assert report["environment"]["ceiling"] == kept
    checks = {check["name"]: check for check in report["certificate"]["checks"]}
    assert 0 < checks["headroom"]["value"] < 100


def test_a_machine_that_is_too_busy_is_not_measured(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(calibrate, "LEAST_FLIGHTS", 10**9)
    assert enter(["calibrate", "--duration", "0.5"]) == 1
    assert "too busy to be measured" in capsys.readouterr().err
    assert not (tmp_path / "state" / "loadstone" / "ceiling.json").exists()
