"""`loadstone report FOLDER`: every output again from the folder alone, byte for byte."""

from __future__ import annotations

import json
import os
import shutil

import polars as pl
import pytest

OUTPUTS = ("report.json", "report.csv", "summary.txt", "requests.jsonl", "inputs.json")


@pytest.fixture(scope="module")
def run(good, engine):
    return good(
        f"--url {engine.url} --streaming --isl 16 --osl 4 --request-count 10 --warmup-request-count 2"
    )


@pytest.fixture
def copy(run, tmp_path):
    """The folder at another place, without what can be made again."""
    folder = tmp_path / "copy"
    shutil.copytree(run.path, folder)
    for name in OUTPUTS:
        (folder / name).unlink()
    return folder


def test_every_output_is_made_again_as_it_was(run, copy, loadstone):
    done = loadstone("report", str(copy))
    assert (done.code, done.err) == (run.code, "")
    for name in OUTPUTS:
        again = (copy / name).read_text().replace(str(copy), str(run.path))
        assert again == (run.path / name).read_text(), name
    assert done.out.replace(str(copy), str(run.path)) == run.out
    assert {file.name for file in copy.iterdir()} == {file.name for file in run.path.iterdir()}


def test_it_can_be_asked_for_in_the_folder_itself(run, copy, loadstone):
    assert loadstone("report", ".", cwd=copy).code == run.code
    assert (copy / "report.json").read_bytes() == (run.path / "report.json").read_bytes()


def test_asking_twice_changes_nothing(copy, loadstone):
    loadstone("report", str(copy))
    before = {file.name: file.read_bytes() for file in copy.iterdir() if file.is_file()}
    loadstone("report", str(copy))
    assert {file.name: file.read_bytes() for file in copy.iterdir() if file.is_file()} == before


def wrong(done):
    """The one sentence with which a folder was refused."""
    assert (done.code, done.out) == (2, "")
    [line] = done.err.splitlines()
    return line.removeprefix("loadstone: error: ")


def test_a_folder_that_is_not_there(loadstone, tmp_path):
    assert "gone: holds no run.json" in wrong(loadstone("report", str(tmp_path / "gone")))


def test_an_empty_folder(loadstone, tmp_path):
    assert wrong(loadstone("report", str(tmp_path))).startswith(f"{tmp_path}: holds no run.json")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_of_something_else(loadstone, tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    assert "holds no run.json" in wrong(loadstone("report", str(tmp_path)))
    assert [file.name for file in tmp_path.iterdir()] == ["notes.txt"]


@pytest.mark.parametrize("text", ["", "{", "[]", '{"id": 3}', "\x00"])
def test_a_run_log_that_is_damaged_or_of_another_program(loadstone, tmp_path, text):
    (tmp_path / "run.json").write_text(text)
    assert "run.json is damaged" in wrong(loadstone("report", str(tmp_path)))
    assert [file.name for file in tmp_path.iterdir()] == ["run.json"]


def test_a_table_of_another_run_is_not_believed(copy, loadstone):
    log = json.loads((copy / "run.json").read_text())
    log["phases"][-1]["planned"] += 1
    (copy / "run.json").write_text(json.dumps(log))
    done = loadstone("report", str(copy))
    assert (done.code, done.out) == (1, "")
    assert "holds 10 measured requests, but run.json says that 11 were planned" in done.err
    assert done.err.count("\n") == 1


@pytest.mark.parametrize(
    ("file", "left", "words"),
    [
        ("requests.parquet", 0, "requests.parquet is damaged"),
        ("requests.parquet", 500, "requests.parquet is damaged"),
        ("plan/bodies.bin", None, "a file of the run is damaged or missing"),
        ("plan", None, "a file of the run is damaged or missing"),
    ],
)
def test_a_damaged_folder_is_told_in_one_sentence(copy, loadstone, file, left, words):
    if left is None:
        (copy / file).rename(copy / "elsewhere")
    else:
        (copy / file).write_bytes((copy / file).read_bytes()[:left])
    done = loadstone("report", str(copy))
    assert (done.code, done.out) == (1, "")
    assert words in done.err
    assert done.err.count("\n") == 1


def test_a_table_of_another_program_is_not_read(copy, loadstone):
    import polars as pl

    pl.DataFrame({"request": [1]}).write_parquet(copy / "requests.parquet")
    done = loadstone("report", str(copy))
    assert done.code == 1
    assert "requests.parquet is no table of a run: column request_id is missing" in done.err


@pytest.fixture
def foreign(good, tmp_path):
    """The folder of a run as somebody else may send it."""
    run = good("--url sim:step_ms=1 --streaming --isl 16 --osl 4 --request-count 5")
    return shutil.copytree(run.path, tmp_path / "foreign")


@pytest.mark.parametrize(
    "name", ["plan/rows.bin", "plan/bodies.bin", "requests.parquet", "report.csv", "report.json.new"]
)
@pytest.mark.parametrize("kind", ["pipe", "link"])
def test_what_is_no_file_of_its_own_is_refused(loadstone, foreign, tmp_path, name, kind):
    secret = tmp_path / "elsewhere"
    secret.write_text("mine")
    (foreign / name).unlink(missing_ok=True)
    if kind == "pipe":
        os.mkfifo(foreign / name)
    else:
        (foreign / name).symlink_to(secret)
    done = loadstone("report", str(foreign))
    said = f"{foreign / name}: is a link, a pipe or a device, and no part of a run; take it away."
    assert (done.code, done.err) == (2, f"loadstone: error: {said}\n")
    assert secret.read_text() == "mine"


def test_a_link_to_another_folder_is_not_followed(loadstone, foreign, tmp_path):
    victim = tmp_path / "victim"
    victim.mkdir()
    (victim / "d0-0.parquet").write_bytes(b"mine")
    (foreign / "parts").symlink_to(victim)
    assert loadstone("report", str(foreign)).code == 2
    assert (victim / "d0-0.parquet").read_bytes() == b"mine"


def test_a_run_log_that_counts_more_rows_than_there_are(loadstone, foreign):
    log = json.loads((foreign / "run.json").read_text())
    log["phases"][-1]["planned"] = 10_000_000
    (foreign / "run.json").write_text(json.dumps(log))
    (foreign / "requests.parquet").unlink()
    done = loadstone("report", str(foreign))
    assert done.code == 1
    assert (
        "counts 10000000 rows from 0 on, but the plan has 5; the run log or the plan is damaged." in done.err
    )


def test_a_table_of_nonsense_is_told_in_one_sentence(loadstone, foreign):
    table = pl.read_parquet(foreign / "requests.parquet")
    table.with_columns(read_ns=pl.lit([], pl.List(pl.Int64))).write_parquet(foreign / "requests.parquet")
    done = loadstone("report", str(foreign))
    assert done.code == 1
    assert done.err.startswith(f"loadstone: error: {foreign}: a file of the run is damaged or missing: ")
    assert done.err.count("\n") == 1
