"""Making the outputs of a run: what is told when a disk is full."""

from __future__ import annotations

import errno
import shutil
from types import SimpleNamespace

import pytest

from loadstone.errors import LoadstoneError, UsageError
from loadstone.rebuild import is_full, rebuild


@pytest.mark.parametrize(
    ("error", "full"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), True),
        (OSError(errno.EDQUOT, "Disk quota exceeded"), True),
        (OSError(errno.EFBIG, "File too large"), True),
        (RuntimeError("No space left on device (os error 28)"), True),
        (RuntimeError("File too large (os error 27): x"), True),
        (OSError(errno.EACCES, "Permission denied"), False),
        (RuntimeError("Permission denied (os error 13)"), False),
        (RuntimeError("something (os error 281)"), False),
        (ValueError("28"), False),
    ],
)
def test_a_full_disk_is_known_by_its_number(error, full, tmp_path):
    assert is_full(error, tmp_path) == full


def test_a_full_disk_is_known_by_its_free_space(tmp_path, monkeypatch):
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=4096))
    assert is_full(RuntimeError("Invalid thrift: transport error"), tmp_path)


def test_a_folder_that_has_gone_is_not_a_full_disk(tmp_path):
    assert not is_full(RuntimeError("x"), tmp_path / "gone")


def test_a_folder_without_a_run(tmp_path):
    with pytest.raises(UsageError, match="holds no run"):
        rebuild(tmp_path)
    (tmp_path / "run.json").write_text("{")
    with pytest.raises(UsageError, match="is damaged"):
        rebuild(tmp_path)


def test_no_space_for_the_report(tmp_path, run_log, monkeypatch):
    from loadstone import folder
    from loadstone.read import tables

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    folder.write_run(tmp_path, run_log())
    monkeypatch.setattr(tables, "build", full)
    with pytest.raises(LoadstoneError, match=f"`loadstone report {tmp_path}` makes the report") as told:
        rebuild(tmp_path)
    assert told.value.exit == 1


@pytest.mark.parametrize("known", [None, ["hunter2"]])
def test_secrets_are_passed_on_to_what_is_still_to_be_decoded(tmp_path, run_log, monkeypatch, known):
    from loadstone import folder
    from loadstone.read import tables

    def build(*given):
        passed.append(given)
        raise OSError(errno.ENOSPC, "No space left on device")

    passed = []
    folder.write_run(tmp_path, run_log())
    monkeypatch.setattr(tables, "build", build)
    with pytest.raises(LoadstoneError):
        rebuild(tmp_path, known)
    assert passed == [(tmp_path, known)]
