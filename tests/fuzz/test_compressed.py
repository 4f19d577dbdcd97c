"""Compressed in any way that we read, cut anywhere, broken off anywhere: the bytes are those of the body."""

from __future__ import annotations

import gzip
import zlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loadstone.wire.http1 import frame
from loadstone.wire.inflate import inflate


def flushed(body, window, step):
    """As a server does it that flushes after every event."""
    packer = zlib.compressobj(wbits=window)
    pieces = [body[at : at + step] for at in range(0, len(body), step)]
    return (
        b"".join(packer.compress(piece) + packer.flush(zlib.Z_SYNC_FLUSH) for piece in pieces)
        + packer.flush()
    )


FORMS = {
    "gzip": lambda body: (b"gzip", gzip.compress(body, mtime=0)),
    "gzip, flushed": lambda body: (b"gzip", flushed(body, 31, 60)),
    "gzip, two members": lambda body: (
        b"x-gzip",
        gzip.compress(body[:50], mtime=0) + gzip.compress(body[50:], mtime=0),
    ),
    "zlib": lambda body: (b"deflate", flushed(body, 15, 60)),
    "deflate": lambda body: (b"deflate", flushed(body, -15, 60)),
}


@pytest.mark.parametrize("form", FORMS)
def test_compressed_it_means_the_same(canonical, judged, form):
    encoding, packed = FORMS[form](canonical.body)
    head = canonical.head(b"Content-Encoding: %s\r\nContent-Length: %d\r\n\r\n" % (encoding, len(packed)))
    meant = judged([canonical.raw()], canonical.endpoint)
    name, answer = judged([head + packed], canonical.endpoint)
    assert (name, answer.reply, answer.compressed) == (meant[0], meant[1].reply, encoding.decode())
    for at in range(0, len(packed), 7):
        assert judged([head + packed[:at], packed[at:]], canonical.endpoint) == (name, answer)
        response = frame([head + packed[:at]])
        assert canonical.body.startswith(response.body)
        assert response.fault is None
        judged([head + packed[:at]], canonical.endpoint)


@settings(max_examples=150)
@given(st.sampled_from(["gzip", "deflate"]), st.lists(st.binary(max_size=40), max_size=6), st.integers(0, 50))
def test_any_bytes_under_any_name(encoding, pieces, limit):
    found = inflate(pieces, encoding, limit)
    assert len(found.pieces) == len(pieces)
    assert sum(map(len, found.pieces)) <= limit
    assert found.too_large <= (found.fault is not None)


@settings(max_examples=150)
@given(st.sampled_from(sorted(FORMS)), st.binary(min_size=1, max_size=300), st.data())
def test_damage_anywhere_is_no_exception(form, body, data):
    encoding, packed = FORMS[form](body)
    at = data.draw(st.integers(0, len(packed) - 1))
    damaged = packed[:at] + data.draw(st.binary(max_size=3)) + packed[at + 1 :]
    cut = data.draw(st.integers(0, len(damaged)))
    found = inflate([damaged[:cut], damaged[cut:]], encoding.decode(), 10_000)
    assert len(found.pieces) == 2
