"""The plan on disk."""

from __future__ import annotations

import hashlib
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadstone.plan import store
from loadstone.plan.store import BODIES, ROW, ROWS, Draft, Row, Writer, read_requests, read_rows, survey

I32 = st.integers(-1, 2**31 - 1)
DRAFTS = st.lists(
    st.builds(
        Draft,
        due_ns=st.integers(-1, 2**62),
        body=st.binary(max_size=40),
        isl_tokens=I32,
        osl_tokens=I32,
        conversation=st.integers(0, 2**32 - 1),
        turn=st.integers(0, 2**16 - 1),
        phase=st.integers(0, 2**16 - 1),
        final=st.integers(0, 2**16 - 1),
    ),
    max_size=8,
)


def draft(body=b"{}", **changes):
    return Draft(-1, body, -1, -1, 0, 0, 0)._replace(**changes)


def write(folder, *groups):
    """Each group by a writer of its own, as a composer that goes on where another stopped."""
    for group in groups:
        writer = Writer(folder)
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
    kept = ("due_ns", "isl_tokens", "osl_tokens", "conversation", "turn", "phase", "final")
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
        2**16 - 1,
        2**16 - 1,
        2**16 - 1,
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


@pytest.mark.parametrize("torn", [1, 63])
def test_a_torn_last_row_is_left_out(tmp_path, torn):
    write(tmp_path, [draft()] * 3)
    os.truncate(tmp_path / ROWS, 2 * 64 + torn)
    assert [row.request for row in read_rows(tmp_path)] == [0, 1]


def test_a_body_is_on_disk_before_its_row(tmp_path, monkeypatch):
    writer = Writer(tmp_path)
    seen = []
    write = os.write

    def watched(fd, data):
        seen.append(tuple((tmp_path / name).stat().st_size for name in (BODIES, ROWS)))
        return write(fd, data)

    monkeypatch.setattr(store.os, "write", watched)
    writer.append([draft(), draft()])
    monkeypatch.undo()
    writer.close()
    assert seen == [(0, 0), (4, 0)]


def test_a_short_write_is_finished(tmp_path, monkeypatch):
    writer = Writer(tmp_path)
    write = os.write
    monkeypatch.setattr(store.os, "write", lambda fd, data: write(fd, bytes(data)[:5]))
    writer.append([draft(b"0123456789")])
    monkeypatch.undo()
    writer.close()
    assert [body for _, body in read_requests(tmp_path)] == [b"0123456789"]


def test_a_survey_digests_the_bodies_in_their_order(tmp_path):
    bodies = [b"a", b"bb", b"", b"ccc"]
    write(
        tmp_path, [draft(body, isl_tokens=tokens) for body, tokens in zip(bodies, [1, 2, 1, -1], strict=True)]
    )
    assert survey(tmp_path, 0, 4) == (hashlib.sha256(b"abbccc").hexdigest(), 2)
    assert survey(tmp_path, 1, 2) == (hashlib.sha256(b"bb").hexdigest(), 1)
    assert survey(tmp_path, 0, 0) == (hashlib.sha256().hexdigest(), 0)
