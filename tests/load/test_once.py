"""One request, apart from any load."""

from __future__ import annotations

import socket
import time

import pytest

from loadstone.load import once
from loadstone.wire.url import Target

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"
REQUEST = b"GET / HTTP/1.1\r\nContent-Length: 0\r\n\r\n"
pytestmark = pytest.mark.timeout(10)


@pytest.fixture
def ask(serve):
    """The exchange with a server that plays `script`."""

    def run(script, context=None, timeout_s=5.0, verify=True, ended=None):
        server = serve(script, context=context)
        target = Target(context is not None, "localhost", server.port, "")
        sock, _ = once.connect(target, [(socket.AF_INET, server.address)], 5.0, verify)
        with sock:
            return once.exchange(sock, REQUEST, timeout_s, ended)

    return run


def says(*pieces):
    def script(peer):
        peer.request()
        peer.send(*pieces)
        peer.hold()

    return script


def test_the_answer_ends_as_its_framing_says(ask):
    exchanged = ask(says(OK[:10], OK[10:]))
    assert (exchanged.raw, exchanged.complete) == (OK, True)
    assert exchanged.latency_ns > 0


def test_an_interim_answer_is_not_the_answer(ask):
    exchanged = ask(says(b"HTTP/1.1 100 Continue\r\n\r\n", OK))
    assert exchanged.complete
    assert exchanged.raw.endswith(OK)


def test_a_close_ends_it_too(ask):
    def script(peer):
        peer.request()
        peer.send(OK[:-1])

    exchanged = ask(script)
    assert (exchanged.raw, exchanged.complete) == (OK[:-1], False)


@pytest.mark.parametrize(
    "said", [b"SSH-2.0-x\r\n", b"HTTP/1.1 101 X\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n"]
)
def test_what_is_not_http_is_handed_back_as_it_came(ask, said):
    assert ask(says(said))[:2] == (said, False)


def test_an_answer_without_end_is_not_read_for_ever(ask, monkeypatch):
    monkeypatch.setattr(once, "MAX_BYTES", 100_000)

    def script(peer):
        peer.request()
        peer.send(peer.HEAD)
        while True:
            peer.send(peer.TOKEN * 1_000)

    exchanged = ask(script)
    assert not exchanged.complete
    assert 100_000 <= len(exchanged.raw) < 200_000


@pytest.mark.parametrize("said", [b"", b"HTTP/1.1 200 OK\r\n"])
def test_silence_is_a_time_out(ask, said):
    with pytest.raises(TimeoutError):
        ask(says(said), timeout_s=0.05)


def test_over_tls(ask, trusted):
    assert ask(says(OK), context=trusted).raw == OK


def test_an_unknown_certificate(ask, trusted, monkeypatch):
    monkeypatch.delenv("SSL_CERT_FILE")
    with pytest.raises(OSError, match="certificate verify failed"):
        ask(says(OK), context=trusted)
    assert ask(says(OK), context=trusted, verify=False).raw == OK


def test_the_first_address_that_answers_is_taken(serve):
    server = serve(says(OK))
    with socket.create_server(("127.0.0.1", 0)) as listener:
        refusing = listener.getsockname()
    addresses = [(socket.AF_INET, refusing), (9999, ("nowhere", 1)), (socket.AF_INET, server.address)]
    sock, found = once.connect(Target(False, "localhost", 0, ""), addresses, 5.0, True)
    sock.close()
    assert found == (socket.AF_INET, server.address)


def test_no_address_at_all():
    with pytest.raises(OSError, match="no address"):
        once.connect(Target(False, "localhost", 0, ""), [], 1.0, True)


def test_after_the_end_mark_the_end_of_the_message_is_not_awaited_for_long(ask, monkeypatch):
    monkeypatch.setattr(once, "LINGER_NS", 20_000_000)
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    exchanged = ask(says(head, b"e\r\ndata: [DONE]\n\r\n"), ended=lambda data: b"[DONE]" in data)
    assert exchanged.complete


def test_a_server_that_never_pauses_is_out_of_time_all_the_same(ask):
    def script(peer):
        peer.request()
        peer.send(peer.HEAD)
        while True:
            peer.send(peer.TOKEN)

    with pytest.raises(TimeoutError):
        ask(script, timeout_s=0.1)


def test_what_was_said_before_a_reset_is_kept(ask):
    def script(peer):
        peer.request()
        peer.send(OK[:-1])
        time.sleep(0.05)
        peer.reset()

    exchanged = ask(script)
    assert (exchanged.raw, exchanged.complete) == (OK[:-1], False)


def test_an_end_mark_in_two_reads_is_seen(ask, monkeypatch):
    monkeypatch.setattr(once, "LINGER_NS", 20_000_000)
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"

    def script(peer):
        peer.request()
        peer.send(head + b"e\r\ndata: [DO")
        time.sleep(0.02)
        peer.send(b"NE]\n\r\n")
        peer.hold()

    assert ask(script, ended=lambda data: b"[DONE]" in data).complete
