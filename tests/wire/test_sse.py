from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadstone.wire.sse import STRAY_BYTES, Event, Parser, Stray


def parsed(*pieces):
    parser = Parser()
    events = [event for piece in pieces for event in parser.feed(piece)]
    return events + parser.close()


def data_of(stream):
    return [event.data for event in parsed(stream)]


@pytest.mark.parametrize("line_end", [b"\n", b"\r", b"\r\n"])
def test_every_line_end_of_the_standard(line_end):
    stream = b"data: a\n\ndata: b\n\n".replace(b"\n", line_end)
    assert data_of(stream) == [b"a", b"b"]


def test_an_event_is_complete_at_the_first_byte_that_ends_its_blank_line():
    assert parsed(b"data: a\n\ndata: b\r\n\r\n") == [Event("", b"a", 9), Event("", b"b", 19)]


@pytest.mark.parametrize(
    ("line", "data"),
    [
        (b"data:x", b"x"),
        (b"data: x", b"x"),
        (b"data:  x", b" x"),
        (b"data: x ", b"x "),
        (b"data:a:b", b"a:b"),
        (b"data: x\ndata: y", b"x\ny"),
        (b"data: x\ndata", b"x\n"),
        (b": comment\nid: 7\nretry: 10\nunknown: z\ndata: x", b"x"),
    ],
)
def test_fields(line, data):
    assert data_of(line + b"\n\n") == [data]


def test_data_may_be_empty():
    """The example of the standard: an empty one, a line end, and one that is not finished."""
    assert parsed(b"data\n\ndata\ndata\n\ndata:\n") == [
        Event("", b"", 6),
        Event("", b"\n", 17),
        Event("", b"", 23, whole=False),
    ]


@pytest.mark.parametrize(
    "stream",
    [
        b"",
        b"\n\n\n",
        b": ping\n\n",
        b"event: x\n\n",
        b"id: 1\nretry: 2\n\n",
        b"datas: x\n\n",
        b"data : x\n\n",
        b" data: x\n\n",
        b"{}\n\n",
    ],
)
def test_without_data_there_is_no_event(stream):
    assert parsed(stream) == []


def test_the_kind_belongs_to_one_event_only():
    assert [(e.kind, e.data) for e in parsed(b"event: error\ndata: a\n\ndata: b\n\n")] == [
        ("error", b"a"),
        ("", b"b"),
    ]


def test_an_event_without_data_leaves_no_kind_behind():
    assert parsed(b"event: error\n\ndata: a\n\n") == [Event("", b"a", 23)]
    assert parsed(b"event: a\nevent: b\nevent\ndata: x\n\n")[0].kind == ""


def test_a_byte_order_mark_at_the_start_is_no_part_of_a_field():
    assert data_of(b"\xef\xbb\xbfdata: a\n\n") == [b"a"]
    assert data_of(b"data: a\n\n\xef\xbb\xbfdata: b\n\n") == [b"a"]
    assert data_of(b"\xef\xbb\xbf\xef\xbb\xbfdata: b\n\n") == []
    assert data_of(b"\xef\xbb\xbf\ndata: b\n\n") == [b"b"]


@pytest.mark.parametrize("rest", [b"data: b", b"data: b\n", b"event: k\ndata: b"])
def test_an_unfinished_last_event_is_given_out_and_marked(rest):
    first, last = parsed(b"data: a\n\n" + rest)
    assert first.whole
    assert (last.data, last.whole, last.end) == (b"b", False, 9 + len(rest))


def test_lines_that_are_no_field_are_kept_beside_the_events():
    parser = Parser()
    parser.feed(b": x\nid: 1\nretry\nerror: no\ndata: a\n\n{}\r")
    parser.feed(b"\n torn")
    assert parser.strays == [Stray(b"error: no", 26), Stray(b"{}", 38)]
    parser.close()
    assert parser.strays[2:] == [Stray(b" torn", 44)]


def test_no_more_than_the_first_of_them():
    parser = Parser()
    parser.feed(b"x\n" + b"y" * STRAY_BYTES + b"\nz\n")
    assert [stray.line for stray in parser.strays] == [b"x", b"y" * (STRAY_BYTES - 1)]


STREAMS = st.lists(
    st.sampled_from(
        [
            b"data: ",
            b"data",
            b":",
            b" ",
            b"event: ",
            b"\n",
            b"\r",
            b"\r\n",
            b"\n\n",
            b"x",
            b"\xef\xbb\xbf",
            b"\xe2",
        ]
    ),
    max_size=30,
).map(b"".join)


@given(STREAMS, st.lists(st.integers(0, 80), max_size=8))
def test_however_it_is_cut_the_events_are_the_same(stream, cuts):
    bounds = sorted({0, len(stream), *(cut for cut in cuts if cut < len(stream))})
    pieces = [stream[start:stop] for start, stop in itertools.pairwise(bounds)]
    assert parsed(*pieces) == parsed(stream)
    assert parsed(*(bytes([byte]) for byte in stream)) == parsed(stream)


@given(STREAMS)
def test_events_end_in_order_within_the_stream(stream):
    ends = [event.end for event in parsed(stream)]
    assert ends == sorted(ends)
    assert all(0 < end <= len(stream) for end in ends)
