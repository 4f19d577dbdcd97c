"""`loadstone report FOLDER --format NAME`."""

from __future__ import annotations

import json

from loadstone.cli.entry import enter

RUN = "profile --url sim: --virtual --streaming --concurrency 2 --isl 8 --osl 4 --request-count 6 --ui none"


def run(tmp_path, capsys):
    home = tmp_path / "run"
    assert enter([*RUN.split(), "--artifact-dir", str(home)]) == 0
    capsys.readouterr()
    return home


def test_it_goes_to_stdout_and_the_run_stays_as_it_is(tmp_path, capsys):
    home = run(tmp_path, capsys)
    before = {path: path.read_bytes() for path in home.iterdir() if path.is_file()}
    assert enter(["report", str(home), "--format", "vllm-json"]) == 0
    assert json.loads(capsys.readouterr().out)["completed"] == 6
    assert {path: path.read_bytes() for path in home.iterdir() if path.is_file()} == before


def test_it_goes_to_a_file(tmp_path, capsys):
    home, file = run(tmp_path, capsys), tmp_path / "result.json"
    assert enter(["report", str(home), "--format", "aiperf-json", "--output", str(file)]) == 0
    assert capsys.readouterr().out == ""
    assert json.loads(file.read_text())["request_count"]["avg"] == 6


def test_what_means_nothing_is_refused(tmp_path, capsys):
    home = run(tmp_path, capsys)
    assert enter(["report", str(home), "--output", "x"]) == 2
    assert "without --format" in capsys.readouterr().err
    assert enter(["report", str(home), "--format", "aiperf"]) == 2
    assert "aiperf-json" in capsys.readouterr().err


def test_a_folder_without_a_report_says_how_to_make_one(tmp_path, capsys):
    home = run(tmp_path, capsys)
    (home / "report.json").unlink()
    assert enter(["report", str(home), "--format", "aiperf-json"]) == 2
    assert f"`loadstone report {home}` makes it" in capsys.readouterr().err


def test_a_saved_run_is_judged_and_written_in_one_go(tmp_path, capsys):
    home = run(tmp_path, capsys)
    before = (home / "report.json").read_bytes()
    assert enter(["report", str(home), "--slo", "request_latency.max<1us", "--format", "junit"]) == 3
    assert 'name="request_latency.max&lt;0.001ms"' in capsys.readouterr().out
    assert (home / "report.json").read_bytes() == before


def test_a_study_has_pages_of_its_own(tmp_path, capsys):
    home = tmp_path / "study"
    words = [
        *RUN.split(),
        "--num-profile-runs",
        "2",
        "--slo",
        "request_latency.max<9s",
        "--artifact-dir",
        str(home),
    ]
    assert enter(words) == 0
    assert "testcase" in (home / "junit.xml").read_text()
    capsys.readouterr()
    assert enter(["report", str(home), "--format", "markdown"]) == 0
    assert capsys.readouterr().out.startswith("## 2 of 2 runs count.")
    assert enter(["report", str(home), "--format", "vllm-json"]) == 2
    assert "name one of its folders" in capsys.readouterr().err


def test_no_file_of_the_run_is_replaced(tmp_path, capsys):
    home = run(tmp_path, capsys)
    assert enter(["report", str(home), "--format", "markdown", "--output", str(home / "run.json")]) == 2
    assert "is a file of the run itself" in capsys.readouterr().err
    assert enter(["report", str(home), "--format", "markdown", "--output", str(home / "page.md")]) == 0
