"""`loadstone plot` as a user calls it: files written, their paths printed, one sentence when it cannot be done."""

from __future__ import annotations

import importlib.util

import pytest

from loadstone.__main__ import main

SENT_AT = range(0, 1000, 100)


@pytest.fixture
def run(tmp_path, frame, run_log, answer):
    """A run's folder, and the working folder in it."""
    from loadstone import folder as layout

    home = tmp_path / "run"
    home.mkdir()
    frame(*(answer(at + 50, sent=at) for at in SENT_AT)).write_parquet(home / layout.REQUESTS)
    layout.write_run(home, run_log(rate=10.0, planned=len(SENT_AT)))
    return home


def test_the_paths_of_the_files_are_what_is_printed(run, capsys):
    assert main(["plot", str(run), "--figure", "request-rate", "--format", "svg,html"]) == 0
    out, err = capsys.readouterr()
    assert out.splitlines() == [str(run / "plots" / f"request-rate.{ending}") for ending in ("svg", "html")]
    assert err == ""
    assert all((run / "plots" / f"request-rate.{ending}").is_file() for ending in ("svg", "html"))


def test_one_figure_goes_where_it_is_told_with_the_words_it_is_given(run, tmp_path, capsys):
    path = tmp_path / "new" / "a.svg"
    words = [
        "--figure",
        "concurrency",
        "-o",
        str(path),
        "--title",
        "Mine",
        "--label",
        "ours",
        "--theme",
        "dark",
    ]
    assert main(["plot", str(run), *words]) == 0
    assert capsys.readouterr().out == f"{path}\n"
    text = path.read_text()
    assert ">Mine<" in text
    assert ">ours<" in text
    assert 'fill="#1B1D21"' in text


def test_the_figures_are_listed_without_a_folder(capsys):
    assert main(["plot", "--list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == [
        "concurrency",
        "latency-over-time",
        "offered-sent-queued",
        "request-rate",
    ]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ([], "Missing argument 'FOLDER...'."),
        (["nowhere"], "nowhere: holds no run.json; give the folder that a run named at its end."),
        (
            ["nowhere", "--theme", "pink"],
            "Invalid value for '--theme': 'pink' is not one of 'light', 'dark'.",
        ),
        (["x", "--fromat", "png"], "There is no option --fromat. Did you mean --format?"),
    ],
)
def test_what_is_wrong_is_one_sentence(words, sentence, capsys):
    assert main(["plot", *words]) == 2
    assert capsys.readouterr().err == f"loadstone: error: {sentence}\n"


@pytest.mark.parametrize("words", [["plot", "--list"], ["plot", "some-run"]])
def test_without_the_extra_it_says_what_to_install(words, monkeypatch, capsys):
    find = importlib.util.find_spec
    monkeypatch.setattr("loadstone.cli.plot.find_spec", lambda name: None if name == "altair" else find(name))
    assert main(words) == 2
    assert capsys.readouterr().err == (
        "loadstone: error: plot needs Altair and vl-convert, which are not installed: pip install '.[plot]' in loadstone's folder.\n"
    )


def test_a_folder_that_cannot_be_drawn_is_named_and_no_trace_is_shown(run, capsys, monkeypatch):
    monkeypatch.setattr("loadstone.plot._runs.Tables.read", lambda *_: 1 / 0)
    assert main(["plot", str(run)]) == 1
    assert capsys.readouterr().err == f"loadstone: error: {run}: cannot be drawn: division by zero.\n"


def test_help_imports_nothing_that_draws(loadstone):
    done = loadstone("plot", "--help", PYTHONPROFILEIMPORTTIME="1")
    assert done.returncode == 0
    assert "FOLDER..." in done.stdout
    assert not [
        line for line in done.stderr.splitlines() if line.endswith((" altair", " polars", " vl_convert"))
    ]
