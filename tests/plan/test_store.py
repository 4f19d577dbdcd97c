"""The plan on disk."""

from __future__ import annotations

import hashlib
import os
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadstone.plan import store
from loadstone.plan.store import (
    BODIES,
    ROW,
    Draft,
    Row,
    Writer,
    read_requests,
    read_rows,
    rows_file,
    survey,
)

U16 = st.integers(0, 2**16 - 1)
I32 = st.integers(-1, 2**31 - 1)
DRAFTS = st.lists(
    st.builds(
        Draft,
        due_ns=st.integers(-1, 2**62),
        body=st.binary(min_size=1, max_size=40),
        isl_tokens=I32,
        osl_tokens=I32,
        conversation=st.integers(0, 2**32 - 1),
        turn=U16,
        phase=st.just(0),
        final=U16,
        target=U16,
        model=U16,
        follows=U16,
        cancelled=U16,
        opens=U16,
    ),
    max_size=8,
)
FIRST = (0, 100, 20_000_000)
"""The first rows of three phases."""
ROWS = rows_file(0)


def draft(body=b"{}", **changes):
    return Draft(-1, body, -1, -1, 0, 0, 0)._replace(**changes)


END = draft(b"")


def write(folder, *groups, first_rows=(0,)):
    """Each group by a writer of its own, as a composer that goes on where another stopped."""
    for group in groups:
        writer = Writer(folder, first_rows)
        assert writer.append(group) == len(group)
        writer.close()


@given(groups=st.lists(DRAFTS, max_size=3))
def test_what_was_written_is_read_however_often_it_was_reopened(tmp_path_factory, groups):
    folder = tmp_path_factory.mktemp("plan")
    write(folder, [], *groups)
    drafts = [one for group in groups for one in group]
    rows = list(read_rows(folder))
    assert [row.request for row in rows] == list(range(len(drafts)))
    assert list(read_requests(folder)) == list(zip(rows, (one.body for one in drafts), strict=True))
    kept = [name for name in Draft._fields if name != "body"]
    assert [[getattr(row, name) for name in kept] for row in rows] == [
        [getattr(one, name) for name in kept] for one in drafts
    ]
    assert (folder / ROWS).stat().st_size == 64 * len(drafts)
    assert (folder / BODIES).stat().st_size == sum(len(one.body) for one in drafts)


def test_a_row_is_64_bytes_which_divide_a_page():
    assert ROW.size == 64
    assert 4096 % ROW.size == 0


def test_a_row_at_its_limits():
    row = Row(
        2**63 - 1,
        -(2**63),
        2**64 - 1,
        2**32 - 1,
        2**31 - 1,
        -(2**31),
        2**32 - 1,
        *[2**16 - 1] * 8,
    )
    assert Row._make(ROW.unpack(ROW.pack(*row))) == row


def test_a_stretch_of_rows(tmp_path):
    write(tmp_path, [draft()] * 10)

    def requests(*bounds):
        return [row.request for row in read_rows(tmp_path, *bounds)]

    assert requests(4) == [4, 5, 6, 7, 8, 9]
    assert requests(4, 6) == [4, 5]
    assert requests(4, 4) == []
    assert requests(8, 20) == [8, 9]
    assert requests(20) == []


def test_rows_of_several_phases_are_numbered_through_with_gaps(tmp_path):
    groups = [[draft(b"%d" % number, phase=number)] * 3 for number in (0, 2, 1, 0)]
    write(tmp_path, *groups, first_rows=FIRST)
    found = [(row.request, row.phase, body) for row, body in read_requests(tmp_path)]
    assert found == [
        *((number, 0, b"0") for number in range(6)),
        *((number, 1, b"1") for number in (100, 101, 102)),
        *((number, 2, b"2") for number in (20_000_000, 20_000_001, 20_000_002)),
    ]

    def requests(*bounds):
        return [row.request for row in read_rows(tmp_path, *bounds)]

    assert requests(4, 101) == [4, 5, 100]
    assert requests(6, 100) == []
    assert requests(102) == [102, 20_000_000, 20_000_001, 20_000_002]
    assert requests(102, 20_000_001) == [102, 20_000_000]
    assert requests(20_000_002) == [20_000_002]


def test_a_writer_knows_how_many_rows_every_phase_has(tmp_path):
    write(tmp_path, [draft()] * 4, [draft(phase=1), draft(b"", phase=1)], first_rows=FIRST)
    writer = Writer(tmp_path, FIRST)
    assert writer.rows == [4, 2, 0]
    writer.append([draft(phase=2)] * 5)
    assert writer.rows == [4, 2, 5]
    assert writer.body_bytes == (tmp_path / BODIES).stat().st_size == 2 * 10
    writer.close()


def test_the_files_of_all_phases_are_there_at_once(tmp_path):
    write(tmp_path / "plan", [], first_rows=FIRST)
    assert sorted(path.name for path in (tmp_path / "plan").iterdir()) == [
        BODIES,
        "rows-000000000000.bin",
        "rows-000000000100.bin",
        "rows-000020000000.bin",
    ]


def test_the_mark_of_an_end_is_no_row(tmp_path):
    write(tmp_path, [draft(), END, END], [draft(phase=1), END._replace(phase=1)], first_rows=FIRST)
    assert [row.request for row in read_rows(tmp_path)] == [0, 100]
    assert (tmp_path / ROWS).stat().st_size == 3 * 64
    marks = list(ROW.iter_unpack((tmp_path / ROWS).read_bytes()))[1:]
    assert [Row._make(mark).is_end for mark in marks] == [True, True]


def test_more_marks_than_numbers_up_to_the_next_phase_do_not_hide_its_rows(tmp_path):
    write(tmp_path, [draft(), *[END] * 64], [draft(phase=1)], first_rows=(0, 10))
    assert [row.request for row in read_rows(tmp_path)] == [0, 10]


def test_what_else_is_in_the_folder_does_not_matter(tmp_path):
    write(tmp_path, [draft()])
    for name in ("rows.bin", "rows-1.bin", "rows-000000000000.bin.old", "x"):
        (tmp_path / name).write_bytes(bytes(64))
    assert [row.request for row in read_rows(tmp_path)] == [0]


@pytest.mark.parametrize("torn", [1, 63])
def test_a_torn_last_row_is_left_out(tmp_path, torn):
    write(tmp_path, [draft()] * 3, [draft(phase=1)] * 2, first_rows=FIRST)
    os.truncate(tmp_path / ROWS, 2 * 64 + torn)
    assert [row.request for row in read_rows(tmp_path)] == [0, 1, 100, 101]


def test_a_body_is_on_disk_before_its_row(tmp_path, monkeypatch):
    monkeypatch.setattr(store, "HELD_BYTES", 6)
    writer = Writer(tmp_path)
    seen = []
    write = os.write

    def watched(fd, data):
        seen.append(tuple((tmp_path / name).stat().st_size for name in (BODIES, ROWS)))
        return write(fd, data)

    monkeypatch.setattr(store.os, "write", watched)
    writer.append([draft(), draft()])
    writer.append([draft()] * 4)
    monkeypatch.undo()
    writer.close()
    assert seen == [(0, 0), (4, 0), (4, 128), (10, 128), (12, 128)]


def test_bodies_are_not_held_until_all_are_there(tmp_path, monkeypatch):
    monkeypatch.setattr(store, "HELD_BYTES", 1 << 20)
    writer = Writer(tmp_path)
    tracemalloc.start()
    writer.append(draft(bytes(1 << 18)) for _ in range(100))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    writer.close()
    assert (tmp_path / BODIES).stat().st_size == 100 << 18
    assert peak < 4 << 20


def test_a_short_write_is_finished(tmp_path, monkeypatch):
    writer = Writer(tmp_path)
    write = os.write
    monkeypatch.setattr(store.os, "write", lambda fd, data: write(fd, bytes(data)[:5]))
    writer.append([draft(b"0123456789")])
    monkeypatch.undo()
    writer.close()
    assert [body for _, body in read_requests(tmp_path)] == [b"0123456789"]


def test_a_survey_digests_the_bodies_in_their_order(tmp_path):
    bodies = [b"a", b"bb", b"d", b"ccc"]
    write(
        tmp_path, [draft(body, isl_tokens=tokens) for body, tokens in zip(bodies, [1, 2, 1, -1], strict=True)]
    )
    assert survey(tmp_path, [(0, 4)]) == (hashlib.sha256(b"abbdccc").hexdigest(), 2, 0)
    assert survey(tmp_path, [(1, 2)]) == (hashlib.sha256(b"bbd").hexdigest(), 1, 0)
    assert survey(tmp_path, [(0, 0)]) == (hashlib.sha256().hexdigest(), 0, 0)
    assert survey(tmp_path, []) == (hashlib.sha256().hexdigest(), 0, 0)


def test_a_survey_of_several_phases_leaves_out_what_is_between_them(tmp_path):
    groups = [[draft(b"%d" % number, phase=number)] * 3 for number in (0, 1, 2)]
    write(tmp_path, *groups, first_rows=FIRST)
    assert survey(tmp_path, [(0, 2), (20_000_000, 3)]).digest == hashlib.sha256(b"00222").hexdigest()


def test_a_survey_counts_the_requests_of_conversations_that_are_asked_again(tmp_path):
    write(tmp_path, [draft(conversation=number) for number in (0, 0, 1, 2, 2, 3)])
    assert survey(tmp_path, [(0, 6)], distinct=2).repeated == 3
    assert survey(tmp_path, [(0, 4)], distinct=2).repeated == 1
    assert survey(tmp_path, [(0, 6)], distinct=4).repeated == 0
