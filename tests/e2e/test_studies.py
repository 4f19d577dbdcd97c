"""Several runs as one, through the command line."""

from __future__ import annotations

import json
import signal

import pytest

from loadstone.cli.entry import enter

RUN = (
    "profile --url sim: --virtual --streaming --concurrency 2 --isl 8 --osl 4 --osl-stddev 1 --request-count 12"
    " --ui none"
)


def study(home, words, capsys):
    code = enter([*RUN.split(), *words.split(), "--artifact-dir", str(home)])
    return code, json.loads((home / "study.json").read_text()), capsys.readouterr()


def test_repeated_runs_have_folders_and_one_summary(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")  # as wide as the summary that is kept
    home = tmp_path / "study"
    code, told, shown = study(home, "--num-profile-runs 3 --random-seed 5", capsys)
    assert code == 0
    assert [(run["name"], run["seed"], run["exit"], run["fault"]) for run in told["runs"]] == [
        ("run-1", 5, 0, None),
        ("run-2", 6, 0, None),
        ("run-3", 7, 0, None),
    ]
    reports = [json.loads((home / f"run-{number}" / "report.json").read_text()) for number in (1, 2, 3)]
    latency = told["sides"]["run"]["request_latency"]["stats"]["mean"]
    means = [report["metrics"]["request_latency"]["mean"] for report in reports]
    assert latency["values"] == means
    assert latency["mean"] == pytest.approx(sum(means) / 3)
    assert latency["low"] < latency["mean"] < latency["high"]
    assert shown.out.startswith("3 of 3 runs count.")
    assert shown.out.rstrip() == (home / "summary.txt").read_text().rstrip()
    assert "run 3 of 3: run-3" in shown.err


def test_a_study_is_rebuilt_from_its_folders(tmp_path, capsys):
    home = tmp_path / "study"
    _, told, shown = study(home, "--num-profile-runs 2 --random-seed 5", capsys)
    for number in (1, 2):
        (home / f"run-{number}" / "report.json").unlink()
    assert enter(["report", str(home)]) == 0
    assert json.loads((home / "study.json").read_text()) == told
    assert capsys.readouterr().out == shown.out


def test_runs_end_when_the_mean_is_known(tmp_path, capsys):
    _, told, _ = study(
        tmp_path / "study", "--num-profile-runs 9 --stop-runs-when request_throughput:60", capsys
    )
    assert len(told["runs"]) == 3
    assert told["ended_early"].endswith("after 3 runs")


def test_one_seed_for_all_runs_gives_the_same_numbers(tmp_path, capsys):
    _, told, _ = study(tmp_path / "study", "--num-profile-runs 2 --no-vary-seed-per-trial", capsys)
    assert told["sides"]["run"]["request_latency"]["stats"]["p99"]["std"] == 0.0


def test_an_earlier_study_is_replaced_only_when_told(tmp_path, capsys):
    home = tmp_path / "study"
    study(home, "--num-profile-runs 3", capsys)
    words = [*RUN.split(), "--num-profile-runs", "2", "--artifact-dir", str(home)]
    assert enter(words) == 2
    assert "holds a study already; --force replaces it" in capsys.readouterr().err
    assert enter([*words, "--force"]) == 0
    assert not (home / "run-3" / "report.json").exists()


def test_a_folder_of_somebody_else_is_left_alone(tmp_path, capsys):
    (tmp_path / "letter.txt").write_text("dear")
    assert enter([*RUN.split(), "--num-profile-runs", "2", "--artifact-dir", str(tmp_path)]) == 2
    assert "holds no earlier study" in capsys.readouterr().err


def test_a_goal_nobody_knows_is_found_before_anything_starts(tmp_path, capsys):
    home = tmp_path / "study"
    words = [
        *RUN.split(),
        "--num-profile-runs",
        "4",
        "--stop-runs-when",
        "latencey:2",
        "--artifact-dir",
        str(home),
    ]
    assert enter(words) == 2
    assert not home.exists()


def test_two_servers_in_turn_are_compared(tmp_path, capsys):
    home = tmp_path / "study"
    words = "--interleave sim:step_ms=20 --num-profile-runs 3 --random-seed 5"
    code, told, shown = study(home, words, capsys)
    assert code == 0
    assert [run["name"] for run in told["runs"]] == ["a-1", "b-1", "a-2", "b-2", "a-3", "b-3"]
    assert [run["seed"] for run in told["runs"]] == [5, 5, 6, 6, 7, 7]
    assert told["targets"] == {"a": "sim:", "b": "sim:step_ms=20"}
    means = [told["sides"][side]["inter_token_latency"]["stats"]["mean"]["mean"] for side in "ab"]
    assert means[1] > 1.5 * means[0]
    assert (home / "compare.json").is_file()
    assert "inter token latency mean" in shown.out


def test_objectives_are_judged_over_the_runs(tmp_path, capsys):
    words = "--num-profile-runs 3 --slo ttft.p50<500ms,itl.p50<1ms --random-seed 5"
    code, told, shown = study(tmp_path / "study", words, capsys)
    assert code == 3
    assert [one["verdict"] for one in told["slo"]["run"]] == ["PASS", "FAIL"]
    assert "PASS       time_to_first_token.p50<500ms. The mean over 3 runs is" in shown.out


def test_a_study_that_cannot_begin_leaves_the_earlier_one_as_it_is(tmp_path, capsys):
    home = tmp_path / "study"
    study(home, "--num-profile-runs 2", capsys)
    before = {path: path.read_bytes() for path in home.rglob("*") if path.is_file()}
    words = "profile --url localhost:9 --model m --num-profile-runs 2 --force --ui none --artifact-dir"
    assert enter([*words.split(), str(home)]) == 1
    assert "localhost:9" in capsys.readouterr().err
    assert {path: path.read_bytes() for path in home.rglob("*") if path.is_file()} == before


def test_a_file_of_somebody_else_in_a_runs_folder_stays(tmp_path, capsys):
    home = tmp_path / "study"
    study(home, "--num-profile-runs 2 --random-seed 5", capsys)
    (home / "run-1" / "notes.txt").write_text("dear")
    _, told, _ = study(home, "--num-profile-runs 2 --random-seed 9 --force", capsys)
    assert [run["seed"] for run in told["runs"]] == [9, 10]
    assert (home / "run-1" / "notes.txt").read_text() == "dear"


@pytest.mark.parametrize("name", ["../victim", "/victim", "run-1/../../victim", "victim"])
def test_no_name_leads_out_of_the_folder(name, tmp_path, capsys):
    home, victim = tmp_path / "study", tmp_path / "victim"
    study(home, "--num-profile-runs 2", capsys)
    assert enter([*RUN.split(), "--artifact-dir", str(victim)]) == 0
    before = {path: path.read_bytes() for path in victim.rglob("*") if path.is_file()}
    told = json.loads((home / "study.json").read_text())
    told["runs"][1]["name"] = name if name != "/victim" else str(victim)
    (home / "study.json").write_text(json.dumps(told))
    for words in (
        ["report", str(home)],
        [*RUN.split(), "--num-profile-runs", "2", "--force", "--artifact-dir", str(home)],
    ):
        assert enter(words) == 2
        assert "is no name of a run" in capsys.readouterr().err
    assert {path: path.read_bytes() for path in victim.rglob("*") if path.is_file()} == before


def test_a_link_is_no_run_of_a_study(tmp_path, capsys):
    home = tmp_path / "study"
    study(home, "--num-profile-runs 2", capsys)
    (home / "run-2").rename(tmp_path / "elsewhere")
    (home / "run-2").symlink_to(tmp_path / "elsewhere")
    assert enter(["report", str(home)]) == 2
    assert "is a link" in capsys.readouterr().err


@pytest.mark.parametrize(("pause", "mark"), [("60", "VALID"), ("0", "run 2 of 3")])
def test_a_study_that_is_interrupted_between_two_runs_is_told(pause, mark, tmp_path, started):
    """In the cooldown, or as soon as the second run has been announced."""
    home = tmp_path / "study"
    words = f"--num-profile-runs 3 --profile-run-cooldown-seconds {pause} --artifact-dir {home}"
    process = started(f"{RUN} {words}")
    assert any(line.startswith(mark) for line in process.stderr)
    process.send_signal(signal.SIGINT)
    assert process.ended().code == 130
    told = json.loads((home / "study.json").read_text())
    assert (told["runs"][0]["exit"], told["runs"][0]["fault"]) == (0, None)
    assert (home / "summary.txt").is_file()
