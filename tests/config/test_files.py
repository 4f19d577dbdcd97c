"""A file that a user names may be anything."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from loadstone.config.files import content, document
from loadstone.errors import UsageError

pytestmark = pytest.mark.timeout(20)


def refusal(file):
    with pytest.raises(UsageError) as caught:
        document(file)
    return str(caught.value)


def test_what_it_holds(tmp_path):
    (tmp_path / "a").write_bytes(b"\0\xff\n")
    assert content(tmp_path / "a") == b"\0\xff\n"


def test_a_link_is_the_file_it_leads_to(tmp_path):
    (tmp_path / "a.toml").write_text("[load]\nconcurrency = 3\n")
    (tmp_path / "b.toml").symlink_to(tmp_path / "a.toml")
    assert document(tmp_path / "b.toml") == {"load": {"concurrency": 3}}


def test_a_pipe_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "a.toml")
    assert refusal(tmp_path / "a.toml").endswith("a.toml: is a pipe or a device; give a file.")


# ---- pipes, where they are allowed --------------------------------------------------------------------


@pytest.fixture
def pipe(tmp_path):
    """A named pipe, and a function that writes to it from elsewhere."""
    file = tmp_path / "pipe"
    os.mkfifo(file)
    writers = []

    def write(*pieces):
        def run():
            with file.open("wb", buffering=0) as opened:
                for piece in pieces:
                    opened.write(piece)

        writers.append(threading.Thread(target=run, daemon=True))
        writers[-1].start()

    yield file, write
    for writer in writers:
        writer.join(5)


def test_a_pipe_is_read_until_its_writer_closes_it(pipe):
    file, write = pipe
    write(b"sk-", b"hunter2\n")
    assert content(file, pipe_s=5.0) == b"sk-hunter2\n"


def test_a_pipe_whose_writer_has_gone_is_read_to_its_end():
    ours, theirs = os.pipe()
    os.write(theirs, b"sk-hunter2")
    os.close(theirs)
    assert content(Path(f"/dev/fd/{ours}"), pipe_s=5.0) == b"sk-hunter2"
    os.close(ours)


def test_a_pipe_that_nobody_closes_is_waited_for_so_long(pipe):
    ours, theirs = os.pipe()
    os.write(theirs, b"sk-")
    with pytest.raises(UsageError, match=r"is a pipe whose writer is not done within 0\.05 s"):
        content(Path(f"/dev/fd/{ours}"), pipe_s=0.05)
    os.close(ours)
    os.close(theirs)
    with pytest.raises(UsageError, match=r"is a pipe whose writer is not done within 0\.05 s"):
        content(pipe[0], pipe_s=0.05)


def test_a_pipe_without_end_is_not_read_for_ever(pipe):
    file, write = pipe
    write(b"x" * 4096)
    with pytest.raises(UsageError, match="is larger than 1 KiB"):
        content(file, 1024, pipe_s=5.0)


def test_a_folder(tmp_path):
    (tmp_path / "a.toml").mkdir()
    assert refusal(tmp_path / "a.toml").endswith("a.toml: is a folder; give a file.")


def test_a_device_without_end(tmp_path):
    (tmp_path / "a.yaml").symlink_to("/dev/zero")
    assert refusal(tmp_path / "a.yaml").endswith("a.yaml: is a pipe or a device; give a file.")


def test_a_file_of_100_megabytes_is_not_read(tmp_path):
    with (tmp_path / "a.toml").open("wb") as file:
        file.truncate(100_000_000)
    assert refusal(tmp_path / "a.toml").endswith("a.toml: is larger than 256 KiB; is it the right file?")


def test_a_file_that_is_not_there():
    assert refusal(Path("none.toml")) == "none.toml: cannot be read: No such file or directory."


@pytest.mark.parametrize("begin", ["{}a = 1", "[{}a]", "x = {{ {}a = 1 }}", '{}"a" = 1'])
@pytest.mark.parametrize("piece", ["a.", "'a'.", '"a" . '])
def test_a_key_of_thousands_of_parts_is_refused_at_once(tmp_path, begin, piece):
    (tmp_path / "a.toml").write_text(begin.format(piece * (200_000 // len(piece))))
    assert refusal(tmp_path / "a.toml").endswith("a.toml: is nested too deeply; no key needs that.")


def test_dots_in_a_text_are_no_key(tmp_path):
    (tmp_path / "a.toml").write_text(f"a = '{'.' * 500} {'one by one. ' * 100}'\n")
    assert document(tmp_path / "a.toml")["a"].startswith("....")
