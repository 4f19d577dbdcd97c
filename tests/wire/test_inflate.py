from __future__ import annotations

import gzip
import zlib

import pytest

from loadstone.wire.inflate import MOST_MEMBERS, SLICE_BYTES, inflate

TEXT = b"".join(b"data: %d\n\n" % i for i in range(500))
RAW = zlib.compressobj(wbits=-15)
FORMS = [
    ("gzip", gzip.compress(TEXT)),
    ("x-gzip", gzip.compress(TEXT)),
    ("gzip", gzip.compress(TEXT[:700]) + gzip.compress(b"") + gzip.compress(TEXT[700:])),
    ("gzip", gzip.compress(TEXT) + b"\0\0 padding"),
    ("deflate", zlib.compress(TEXT)),
    ("deflate", RAW.compress(TEXT) + RAW.flush()),
    ("deflate", zlib.compress(TEXT) + b"more"),
]
LIMIT = 1 << 20


def byte_by_byte(data):
    return [data[at : at + 1] for at in range(len(data))]


@pytest.mark.parametrize(("encoding", "data"), FORMS)
def test_every_form_in_one_piece_and_in_many(encoding, data):
    assert inflate([data], encoding, LIMIT) == ([TEXT], None, False)
    pieces, fault, _ = inflate(byte_by_byte(data), encoding, LIMIT)
    assert (b"".join(pieces), fault, len(pieces)) == (TEXT, None, len(data))


def test_a_piece_brings_what_was_flushed_with_it():
    packer = zlib.compressobj(wbits=31)
    sent = [packer.compress(event) + packer.flush(zlib.Z_SYNC_FLUSH) for event in (b"one", b"two")]
    assert inflate([*sent, packer.flush()], "gzip", LIMIT).pieces == [b"one", b"two", b""]


@pytest.mark.parametrize(("encoding", "data"), FORMS[:1] + FORMS[4:6])
def test_what_is_cut_off_keeps_what_could_be_read(encoding, data):
    (found,), fault, _ = inflate([data[: len(data) // 2]], encoding, LIMIT)
    assert fault is None
    assert found
    assert TEXT.startswith(found)


@pytest.mark.parametrize("encoding", ["br", "zstd", "compress", "gzip, gzip", "exi"])
def test_other_encodings_are_a_fault(encoding):
    fault = f"compressed with {encoding}, which we did not ask for"
    assert inflate([b"a", b"b"], encoding, LIMIT) == ([b"", b""], fault, False)


@pytest.mark.parametrize(
    ("encoding", "data"), [("gzip", TEXT), ("gzip", zlib.compress(TEXT)), ("deflate", b"\xff\xff" + TEXT)]
)
def test_what_is_not_what_it_is_said_to_be(encoding, data):
    pieces, fault, _ = inflate([data, data], encoding, LIMIT)
    assert pieces == [b"", b""]
    assert fault.startswith(f"the body is not the {encoding} that it is said to be: ")


def test_damage_keeps_what_came_before_it():
    data = gzip.compress(TEXT)
    first, last = data[:-8], bytes(8)
    pieces, fault, _ = inflate([first, last], "gzip", LIMIT)
    assert pieces == [TEXT, b""]
    assert "incorrect data check" in fault


@pytest.mark.parametrize("limit", [1, 1000, len(TEXT) - 1])
def test_no_more_than_the_limit_comes_out(limit):
    data = gzip.compress(TEXT)
    pieces, fault, too_large = inflate([data, b"more"], "gzip", limit)
    assert (pieces, too_large) == ([TEXT[:limit], b""], True)
    assert fault == f"the body is longer than {limit} bytes when decompressed (--max-response-bytes)"
    assert inflate([data], "gzip", len(TEXT)).fault is None


def test_members_without_end():
    empty = gzip.compress(b"", mtime=0)
    assert len(empty) < SLICE_BYTES
    fault = inflate([empty * (MOST_MEMBERS + 1)], "gzip", LIMIT).fault
    assert fault == f"the body is not the gzip that it is said to be: more than {MOST_MEMBERS} members"
