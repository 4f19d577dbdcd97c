"""TLS between two ends in memory."""

from __future__ import annotations

import ssl

import pytest

from loadstone.load import sockets
from loadstone.load.job import TlsJob
from loadstone.load.tls import Tls

CHECKED = TlsJob(server_name="localhost", verify=True)


class Far:
    """The server's end."""

    def __init__(self, context):
        self.incoming, self.outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = context.wrap_bio(self.incoming, self.outgoing, server_side=True)

    def goes_on(self, call, *arguments):
        try:
            return call(*arguments)
        except ssl.SSLWantReadError:
            return None


@pytest.fixture
def ends(trusted):
    """A client and a server that have shaken hands."""
    near, far = Tls(sockets.tls_context(CHECKED), "localhost"), Far(trusted)
    done = near.handshake()
    for _ in range(5):
        far.incoming.write(near.pending())
        far.goes_on(far.tls.do_handshake)
        if received := far.outgoing.read():
            done = near.handshake(received)
    assert done
    return near, far


def test_a_request_and_its_answer(ends):
    near, far = ends
    far.incoming.write(near.encrypt(b"ping" * 10_000))
    assert b"".join(iter(lambda: far.goes_on(far.tls.read, 65536), None)) == b"ping" * 10_000
    far.tls.write(b"pong")
    assert near.decrypt(far.outgoing.read()) == b"pong"
    assert not near.ended


def test_plaintext_comes_out_when_its_record_is_whole(ends):
    near, far = ends
    far.tls.write(b"pong")
    cipher = far.outgoing.read()
    pieces = [near.decrypt(cipher[at : at + 1]) for at in range(len(cipher))]
    assert [piece for piece in pieces if piece] == [b"pong"]
    assert pieces[-1] == b"pong"


@pytest.mark.parametrize("last", [b"", b"the last words"])
def test_the_goodbye_is_noticed_once_all_is_read(ends, last):
    near, far = ends
    if last:
        far.tls.write(last)
    far.goes_on(far.tls.unwrap)
    assert near.decrypt(far.outgoing.read()) == last
    assert near.ended


def test_rubbish_is_an_ssl_error(ends):
    near, _ = ends
    with pytest.raises(ssl.SSLError):
        near.decrypt(b"HTTP/1.1 400 Bad Request\r\n\r\n")


def test_only_http_1_is_offered(trusted):
    trusted.set_alpn_protocols(["h2", "http/1.1"])
    near, far = Tls(sockets.tls_context(CHECKED), "localhost"), Far(trusted)
    near.handshake()
    far.incoming.write(near.pending())
    far.goes_on(far.tls.do_handshake)
    assert far.tls.selected_alpn_protocol() == "http/1.1"


def test_without_verification_no_name_is_checked():
    context = sockets.tls_context(TlsJob(server_name="localhost", verify=False))
    assert (context.verify_mode, context.check_hostname) == (ssl.CERT_NONE, False)
    context = sockets.tls_context(CHECKED)
    assert (context.verify_mode, context.check_hostname) == (ssl.CERT_REQUIRED, True)
