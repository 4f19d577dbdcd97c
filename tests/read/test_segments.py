from __future__ import annotations

import pytest

from loadstone.read import segments as module
from loadstone.read.segments import Segments


def poll(segments):
    rows, more = segments.poll()
    return rows["serial"].tolist(), more


@pytest.fixture
def segments(run):
    run.recording.mkdir()
    return Segments(run.recording, worker=0, keep=False)


def test_nothing_is_there_before_the_worker_starts(segments):
    assert poll(segments) == ([], False)


def test_rows_come_once_as_the_files_grow(run, segments):
    recorder = run.recorder()
    assert poll(segments) == ([], False)
    recorder.flight(5, [(10, b"abc")])
    assert poll(segments) == ([1, 1, 1], False)
    assert poll(segments) == ([], False)
    recorder.clock(11)
    recorder.start(6)
    assert poll(segments) == ([0, 2], False)


def test_rows_tell_where_their_bytes_are(run, segments):
    recorder = run.recorder()
    first = recorder.start(5)
    recorder.read(first, b"abc", 1)
    recorder.clock(2)
    recorder.read(first, b"de", 3)
    rows, _ = segments.poll()
    data = segments.data(0)
    assert [data[row["at"] : row["at"] + row["code"]] for row in rows if row["code"] < 9] == [b"abc", b"de"]


def test_a_torn_last_row_is_left_out_until_it_is_whole(run, segments):
    recorder = run.recorder()
    recorder.start(5)
    recorder.start(6)
    whole = recorder.path(".idx").read_bytes()
    run.torn(recorder.path(".idx"), 40)
    assert poll(segments) == ([1], False)
    recorder.path(".idx").write_bytes(whole)
    assert poll(segments) == ([2], False)


def test_a_row_without_all_its_bytes_is_left_out(run, segments):
    recorder = run.recorder()
    serial = recorder.start(5)
    recorder.read(serial, b"abc", 1)
    recorder.read(serial, b"def", 2)
    run.torn(recorder.path(".dat"), 5)
    assert poll(segments) == ([1, 1], False)


def test_segments_are_read_one_a_call_in_their_order(run, segments):
    recorder = run.recorder()
    for request in range(3):
        recorder.flight(request, [(1, b"x")])
        if request < 2:
            recorder.next_segment()
    assert [poll(segments) for _ in range(3)] == [([1] * 3, True), ([2] * 3, True), ([3] * 3, False)]


def test_a_long_segment_is_read_in_portions(run, segments, monkeypatch):
    monkeypatch.setattr(module, "READ_ROWS", 2)
    recorder = run.recorder()
    recorder.flight(0, [(1, b"x"), (2, b"y")])
    recorder.next_segment()
    recorder.start(1)
    got = [poll(segments) for _ in range(4)]
    assert got == [([1, 1], True), ([1, 1], True), ([], True), ([2], False)]


def test_other_workers_have_their_own(run, segments):
    run.recorder(worker=1).flight(7, [])
    assert poll(segments) == ([], False)


def test_a_segment_goes_when_it_is_closed_and_none_of_its_flights_is_needed(run, segments):
    recorder = run.recorder()
    recorder.flight(0, [(1, b"x")])
    spanning = recorder.start(1)
    recorder.next_segment()
    recorder.end(spanning, 9, request=1)
    while segments.poll()[1]:
        pass
    segments.forget([1])
    assert run.segments() == ["w00-00000.dat", "w00-00000.idx", "w00-00001.dat", "w00-00001.idx"]
    segments.forget([spanning])
    assert run.segments() == ["w00-00001.dat", "w00-00001.idx"]
    segments.close()
    assert run.segments() == []


def test_segments_that_are_to_be_kept_stay(run):
    run.recorder().flight(0, [(1, b"x")])
    segments = Segments(run.recording, worker=0, keep=True)
    segments.poll()
    segments.forget([1])
    segments.close()
    assert run.segments() == ["w00-00000.dat", "w00-00000.idx"]


def test_after_a_crash_the_first_segment_there_is_the_first_read(run):
    recorder = run.recorder()
    recorder.next_segment()
    recorder.flight(4, [(1, b"x")])
    recorder.path(".idx", segment=0).unlink()
    recorder.path(".dat", segment=0).unlink()
    assert poll(Segments(run.recording, worker=0, keep=False)) == ([1, 1, 1], False)
