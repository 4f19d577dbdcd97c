"""What a tape writes is read back by `read.segments`."""

from __future__ import annotations

import errno
import os

import pytest

from loadstone.load import tape as tape_module
from loadstone.load.tape import Tape
from loadstone.read.segments import Segments
from loadstone.recording import END, END_FACTS, PAIR, ROW, START, segment_name


def put(tape, serial, code, data=b"", tail=None):
    tape.rows.append(ROW.pack(serial, code, 7, tail or PAIR.pack(len(data), 0)))
    if data:
        tape.data.append(data)


def read(folder, worker=0):
    """Everything that was written: (serial, code, bytes), through the reader of recordings."""
    segments = Segments(folder, worker, keep=True)
    found, more = [], True
    while more:
        rows, more = segments.poll()
        for row in rows:
            length = (
                int(row["a"]) if row["code"] == END else int(row["code"]) if row["code"] < START - 9 else 0
            )
            data = segments.data(int(row["segment"]))
            at = int(row["at"])
            found.append((int(row["serial"]), int(row["code"]), bytes(data[at : at + length])))
    return found


def test_rows_and_bytes_come_back(tmp_path):
    tape = Tape(tmp_path, 3)
    put(tape, 1, START)
    put(tape, 1, 5, b"hello")
    put(tape, 2, 1, b"x")
    facts = bytes(END_FACTS.size) + b"words"
    put(tape, 1, END, facts)
    assert tape.flush() == 6 + len(facts)
    assert tape.flush() == 0
    tape.close()
    assert (tmp_path / "w03-00000.idx").stat().st_size == 4 * ROW.size
    assert read(tmp_path, 3) == [(1, START, b""), (1, 5, b"hello"), (2, 1, b"x"), (1, END, facts)]


def test_what_was_gathered_is_written_at_the_end(tmp_path):
    tape = Tape(tmp_path, 0)
    put(tape, 1, 2, b"ab")
    assert read(tmp_path) == []
    tape.close()
    assert read(tmp_path) == [(1, 2, b"ab")]


def test_bytes_are_on_disk_before_the_rows_that_point_to_them(tmp_path, monkeypatch):
    tape = Tape(tmp_path, 0)
    put(tape, 1, 2, b"ab")
    dat, idx = (tmp_path / f"w00-00000.{name}" for name in ("dat", "idx"))
    seen = []
    write = os.write

    def watched(fd, data):
        seen.append((dat.stat().st_size, idx.stat().st_size))
        return write(fd, data)

    monkeypatch.setattr(os, "write", watched)
    tape.flush()
    assert seen == [(0, 0), (2, 0)]
    monkeypatch.undo()
    tape.close()


def test_a_full_segment_is_followed_by_another(tmp_path, monkeypatch):
    monkeypatch.setattr(tape_module, "SEGMENT_BYTES", 10)
    tape = Tape(tmp_path, 0)
    written = []
    for serial in range(1, 6):
        data = bytes([serial]) * 6
        put(tape, serial, len(data), data)
        written.append((serial, 6, data))
        tape.flush()
    tape.close()
    names = sorted(path.name for path in tmp_path.glob("*.dat"))
    assert names == [f"{segment_name(0, number)}.dat" for number in range(3)]
    assert [path.stat().st_size for path in sorted(tmp_path.glob("*.dat"))] == [12, 12, 6]
    assert read(tmp_path) == written


def test_a_short_write_is_finished(tmp_path, monkeypatch):
    tape = Tape(tmp_path, 0)
    put(tape, 1, 20, b"y" * 20)
    write = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: write(fd, bytes(data)[:7]))
    tape.flush()
    monkeypatch.undo()
    tape.close()
    assert read(tmp_path) == [(1, 20, b"y" * 20)]


def test_an_older_recording_is_never_written_over(tmp_path):
    Tape(tmp_path, 0).close()
    with pytest.raises(OSError) as error:
        Tape(tmp_path, 0)
    assert error.value.errno == errno.EEXIST
