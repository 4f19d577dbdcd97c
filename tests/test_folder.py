"""Who may have a run folder, and what is left of an earlier run in it."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec
import pytest

from loadstone import folder, registry
from loadstone.board import Board
from loadstone.errors import UsageError


@pytest.fixture
def earlier(tmp_path):
    """The folder of an earlier run, with something of the user's own in it."""
    home = tmp_path / "run"
    for name in (folder.PLAN, folder.RECORDING, folder.PARTS, folder.FAULTS):
        (home / name).mkdir(parents=True)
        (home / name / "inside").touch()
    for name in (folder.CONFIG, folder.RUN, folder.REQUESTS, folder.LOG, folder.REPORT, "notes.md"):
        (home / name).write_text("x")
    return home


def names(home):
    return sorted(path.name for path in home.iterdir())


def test_a_new_folder_is_made_with_its_parents(tmp_path):
    folder.claim(tmp_path / "a" / "b", force=False)
    assert names(tmp_path / "a" / "b") == []


@pytest.mark.parametrize("force", [False, True])
def test_an_empty_folder_is_taken(tmp_path, force):
    folder.claim(tmp_path, force)
    assert names(tmp_path) == []


@pytest.mark.parametrize("mark", [folder.LOG, folder.RUN])
def test_an_earlier_run_is_kept_without_force(tmp_path, mark):
    (tmp_path / mark).touch()
    with pytest.raises(UsageError, match="holds a run already; --force replaces it"):
        folder.claim(tmp_path, force=False)
    assert names(tmp_path) == [mark]


def test_with_force_what_is_ours_goes_and_what_is_not_stays(earlier):
    folder.claim(earlier, force=True)
    assert names(earlier) == [folder.EARLIER, "notes.md"]
    folder.drop_earlier(earlier)
    assert names(earlier) == ["notes.md"]


def contents(home):
    return {path.relative_to(home): path.read_text() for path in home.rglob("*") if path.is_file()}


def test_an_earlier_run_is_put_back_when_the_new_one_does_not_begin(earlier):
    before = contents(earlier)
    folder.claim(earlier, force=True)
    (earlier / folder.LOG).write_text("of the new one")
    (earlier / folder.PLAN).mkdir()
    folder.release(earlier)
    assert contents(earlier) == before
    assert folder.EARLIER not in names(earlier)


def test_an_earlier_run_outlives_one_that_was_killed_before_it_began(earlier):
    before = contents(earlier)
    folder.claim(earlier, force=True)
    (earlier / folder.CONFIG).write_text("of one that was killed")
    with pytest.raises(UsageError, match="holds a run already; --force replaces it"):
        folder.claim(earlier, force=False)
    folder.claim(earlier, force=True)
    folder.release(earlier)
    assert contents(earlier) == before


def test_of_one_that_was_killed_when_it_had_begun_nothing_earlier_is_left(earlier):
    folder.claim(earlier, force=True)
    (earlier / folder.RUN).write_text("the new one")
    folder.claim(earlier, force=True)
    folder.release(earlier)
    assert contents(earlier) == {Path("notes.md"): "x", Path(folder.RUN): "the new one"}


@pytest.mark.parametrize("force", [False, True])
def test_a_folder_of_that_name_without_a_run_is_somebody_else_s(tmp_path, force):
    (tmp_path / folder.EARLIER).mkdir()
    (tmp_path / folder.EARLIER / "notes.md").touch()
    (tmp_path / folder.CONFIG).touch()
    with pytest.raises(UsageError, match="is not empty and holds no run"):
        folder.claim(tmp_path, force)
    assert names(tmp_path) == [folder.EARLIER, folder.CONFIG]


def test_what_sent_nothing_leaves_nothing_but_what_was_there(earlier, tmp_path):
    folder.release(earlier)
    assert names(earlier) == ["notes.md"]
    folder.claim(tmp_path / "new", force=False)
    (tmp_path / "new" / folder.PLAN).mkdir()
    folder.release(tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_every_output_is_known_to_be_ours():
    files = {registry.load("export", name).FILE for name in registry.names("export")}
    assert files == set(folder.OUTPUTS)


def test_a_link_is_removed_and_not_what_it_points_to(earlier, tmp_path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "kept").touch()
    (earlier / "linked").mkdir()
    os.rename(earlier / folder.PARTS, tmp_path / "moved")  # noqa: PTH104
    (earlier / folder.PARTS).symlink_to(elsewhere)
    folder.claim(earlier, force=True)
    folder.drop_earlier(earlier)
    assert names(elsewhere) == ["kept"]
    assert folder.PARTS not in names(earlier)


@pytest.mark.parametrize("force", [False, True])
def test_what_is_no_run_is_never_touched(tmp_path, force):
    (tmp_path / "thesis.tex").touch()
    (tmp_path / folder.PLAN).mkdir()
    (tmp_path / folder.CONFIG).touch()  # other programs have one, too
    with pytest.raises(UsageError, match="is not empty and holds no run"):
        folder.claim(tmp_path, force)
    assert names(tmp_path) == [folder.CONFIG, folder.PLAN, "thesis.tex"]


def test_a_file_in_the_way(tmp_path):
    (tmp_path / "file").touch()
    for path in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(UsageError, match=r"output\.folder = .*--artifact-dir"):
            folder.claim(path, force=False)


def test_a_folder_that_cannot_be_written_to(tmp_path, monkeypatch):
    def touch(path):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "touch", touch)  # root, as which tests may run, could write anywhere
    with pytest.raises(UsageError, match=r"Permission denied\. Choose another one with --artifact-dir"):
        folder.claim(tmp_path, force=False)


def test_an_earlier_run_is_put_back_where_the_folder_turns_out_not_to_be_ours(earlier, monkeypatch):
    before = contents(earlier)

    def touch(path):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "touch", touch)
    with pytest.raises(UsageError, match="Permission denied"):
        folder.claim(earlier, force=True)
    assert contents(earlier) == before


def test_a_run_log_is_read_as_it_was_written(tmp_path, run_log):
    log = run_log(streaming=True, notices=["a"])
    folder.write_run(tmp_path, log)
    assert msgspec.json.encode(folder.read_run(tmp_path)) == msgspec.json.encode(log)
    assert names(tmp_path) == [folder.RUN]


def test_a_run_log_that_cannot_be_written_leaves_the_old_one(tmp_path, run_log):
    folder.write_run(tmp_path, run_log(id="old"))
    with pytest.raises(TypeError):
        folder.write_run(tmp_path, run_log(id="new", environment={"odd": object()}))
    assert folder.read_run(tmp_path).id == "old"


def test_no_run_log(tmp_path):
    with pytest.raises(FileNotFoundError):
        folder.read_run(tmp_path)
    (tmp_path / folder.RUN).write_text('{"id": 1}')
    with pytest.raises(msgspec.ValidationError):
        folder.read_run(tmp_path)


def test_a_run_goes_on_as_long_as_a_process_has_its_board(tmp_path):
    (tmp_path / folder.RECORDING).mkdir()
    assert not folder.goes_on(tmp_path)
    board = Board(tmp_path / folder.RECORDING / folder.BOARD, 1, create=True)
    assert folder.goes_on(tmp_path)
    board.close()
    assert not folder.goes_on(tmp_path)


def test_a_run_that_goes_on_is_not_replaced_by_force(tmp_path):
    (tmp_path / folder.RECORDING).mkdir()
    (tmp_path / folder.RUN).touch()
    board = Board(tmp_path / folder.RECORDING / folder.BOARD, 1, create=True)
    with pytest.raises(UsageError, match="its run still goes on; choose another"):
        folder.claim(tmp_path, force=True)
    assert (tmp_path / folder.RUN).exists()
    board.close()
    folder.claim(tmp_path, force=True)
    assert names(tmp_path) == [folder.EARLIER]
