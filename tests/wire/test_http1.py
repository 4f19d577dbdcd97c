from __future__ import annotations

import gzip
import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadstone.wire.http1 import MOST_HEAD_BYTES, frame

CHUNKED = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\nTransfer-Encoding: chunked\r\n\r\n"
    b"5\r\nHello\r\n7;ext=1\r\n, world\r\n0\r\n\r\n"
)


def test_a_chunked_message():
    response = frame([CHUNKED])
    assert (response.status, response.body, response.complete) == (200, b"Hello, world", True)
    assert response.media_type == "text/event-stream"
    assert response.headers["transfer-encoding"] == "chunked"


def test_a_message_with_a_length():
    response = frame([b"HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\nno"])
    assert (response.status, response.body, response.complete, response.media_type) == (404, b"no", True, "")


def test_a_body_that_lasts_until_the_close_is_never_complete_by_itself():
    response = frame([b"HTTP/1.1 200 OK\r\n\r\nall", b" of it"])
    assert (response.body, response.arrived, response.complete) == (b"all of it", [3, 9], False)


def test_each_read_tells_how_far_the_body_had_come():
    hello = CHUNKED.index(b"Hello")
    cuts = [0, hello, hello + 3, hello + 7, len(CHUNKED)]
    reads = [CHUNKED[start:stop] for start, stop in itertools.pairwise(cuts)]
    assert frame(reads).arrived == [0, 3, 5, 12]


@given(st.lists(st.integers(1, len(CHUNKED) - 1), max_size=10))
def test_however_it_is_cut_the_message_is_the_same(cuts):
    bounds = [0, *sorted(set(cuts)), len(CHUNKED)]
    reads = [CHUNKED[start:stop] for start, stop in itertools.pairwise(bounds)]
    response = frame(reads)
    assert (response.body, response.complete, response.arrived[-1]) == (b"Hello, world", True, 12)
    assert len(response.arrived) == len(reads)
    assert response.arrived == sorted(response.arrived)


@pytest.mark.parametrize("cut", [1, 30, 60, 90])
def test_interim_responses_are_skipped(cut):
    raw = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 102 Processing\r\nX: y\r\n\r\n" + CHUNKED
    response = frame([raw[:cut], raw[cut:]])
    assert (response.status, response.body) == (200, b"Hello, world")
    assert len(response.arrived) == 2


def test_what_follows_the_message_is_not_looked_at():
    more = b"HTTP/1.1 500 No\r\nContent-Length: 1\r\n\r\nx"
    response = frame([CHUNKED + more, b"and garbage"])
    assert (response.status, response.body, response.fault) == (200, b"Hello, world", None)
    assert response.arrived == [12, 12]


def test_bytes_that_are_no_http():
    response = frame([b"SSH-2.0-OpenSSH_9.6\r\n"])
    assert (response.status, response.complete) == (0, False)
    assert response.fault is not None
    assert response.fault.startswith("not HTTP/1.1: ")


def test_what_came_before_a_broken_chunk_is_kept():
    response = frame([CHUNKED[:-5] + b"zz\r\n", b"later"])
    assert (response.status, response.body, response.complete) == (200, b"Hello, world", False)
    assert response.fault is not None
    assert response.arrived == [12, 12]


def test_a_change_of_protocol_is_told_by_its_status():
    raw = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n\x00\x01"
    response = frame([raw])
    assert (response.status, response.fault) == (101, None)


def test_nothing_at_all():
    response = frame([])
    assert (response.status, response.body, response.arrived, response.complete) == (0, b"", [], False)


def test_a_status_cut_off_is_none() -> None:
    assert [frame([b"HTTP/1.1 503"[:end]]).status for end in (9, 10, 11, 12)] == [0, 0, 0, 503]


def zipped(told="gzip", body=b"Hello, world"):
    body = gzip.compress(body)
    head = b"HTTP/1.1 200 OK\r\nContent-Encoding: %s\r\nContent-Length: %d\r\n\r\n" % (
        told.encode(),
        len(body),
    )
    return head, body


@pytest.mark.parametrize(
    ("told", "encoding"),
    [
        ("gzip", "gzip"),
        ("GZip", "gzip"),
        ("x-gzip", "x-gzip"),
        ("identity, gzip", "gzip"),
        (" gzip ,", "gzip"),
    ],
)
def test_a_compressed_body_is_decompressed(told, encoding):
    response = frame([b"".join(zipped(told))])
    assert (response.body, response.compressed) == (b"Hello, world", encoding)
    assert (response.arrived, response.complete, response.fault) == ([12], True, None)


@pytest.mark.parametrize("told", ["", "identity", "Identity, "])
def test_a_body_that_is_not_compressed(told):
    response = frame([b"HTTP/1.1 200 OK\r\nContent-Encoding: %s\r\n\r\nx" % told.encode()])
    assert (response.body, response.compressed) == (b"x", None)


def test_decompressed_bytes_are_dated_by_their_read():
    head, body = zipped()
    assert frame([head + body[:10], body[10:-8], body[-8:]]).arrived == [0, 12, 12]


def test_encodings_that_we_cannot_read():
    head, body = zipped("br<b>" + "x" * 99)
    response = frame([head + body])
    assert response.fault.startswith("compressed with br?b?xxx")
    assert len(response.compressed) == 40
    assert (response.body, response.arrived, response.status) == (b"", [0], 200)


def test_a_compressed_body_is_bounded():
    response = frame([b"".join(zipped(body=bytes(10_000)))], 100)
    assert (response.body, response.too_large, response.complete) == (bytes(100), True, True)
    assert response.fault.startswith("the body is longer than 100 bytes")


def test_trailers_are_no_headers():
    raw = CHUNKED[:-2] + b"Content-Encoding: br\r\nX: y\r\n\r\n"
    response = frame([raw])
    assert (response.body, response.complete, "x" in response.headers) == (b"Hello, world", True, False)


@pytest.mark.parametrize("step", [997, 1 << 30])
@pytest.mark.parametrize(
    "headers",
    [
        b"X: " + b"y" * MOST_HEAD_BYTES + b"\r\n",
        b"".join(b"X-%d: y\r\n" % i for i in range(MOST_HEAD_BYTES // 4)),
    ],
)
def test_heads_and_trailers_have_an_end(headers, step):
    head = b"HTTP/1.1 200 OK\r\n" + headers + b"\r\nbody"
    trailer = CHUNKED[:-2] + headers + b"\r\n"
    for raw, body in ((head, b""), (trailer, b"Hello, world")):
        response = frame([raw[at : at + step] for at in range(0, len(raw), step)])
        assert response.fault == f"a head or trailer of more than {MOST_HEAD_BYTES} bytes"
        assert (response.body, response.complete) == (body, False)
        assert sum(map(len, response.headers.values())) <= MOST_HEAD_BYTES


def test_a_head_that_does_not_end_is_not_read_to_its_end():
    reads = [b"HTTP/1.1 200 OK\r\nX: ", *([b"y" * 1024] * 1000)]
    assert frame(reads).fault == f"a head or trailer of more than {MOST_HEAD_BYTES} bytes"
    assert len(frame(reads).arrived) == len(reads)


def test_headers_may_be_any_bytes():
    response = frame([b"HTTP/1.1 200 \xff\xfe\r\nServer: \xff\x80\r\n\r\n"])
    assert (response.status, response.headers) == (200, {"server": "\xff\x80"})
