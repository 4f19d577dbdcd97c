"""One request, apart from any load."""

from __future__ import annotations

import socket
import ssl
import threading
import time

import pytest

from loadstone.load import once
from loadstone.load.job import TlsJob
from loadstone.load.once import HandshakeTimeout, ProxyRefusal, Way

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"
REQUEST = b"GET / HTTP/1.1\r\nContent-Length: 0\r\n\r\n"
pytestmark = pytest.mark.timeout(10)


@pytest.fixture
def ask(serve):
    """The exchange with a server that plays `script`."""

    def run(script, context=None, timeout_s=5.0, verify=True, ended=None):
        server = serve(script, context=context)
        tls = TlsJob(server_name="localhost", verify=verify) if context else None
        sock, _ = once.connect(Way([(socket.AF_INET, server.address)], tls), 5.0)
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
    sock, found = once.connect(Way(addresses), 5.0)
    sock.close()
    assert found == (socket.AF_INET, server.address)


def test_no_address_at_all():
    with pytest.raises(OSError, match="no address"):
        once.connect(Way([]), 1.0)


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


# ---- TLS and proxies --------------------------------------------------------------------------------


CONNECT = b"CONNECT host:443 HTTP/1.1\r\nHost: host:443\r\n\r\n"


def proxy_says(answer):
    """A proxy that says one thing and closes; it notes what it was asked in `proxy_says.asked`."""

    def script(peer):
        received = b""
        while not received.endswith(b"\r\n\r\n"):
            received += peer.sock.recv(65536)
        asked.append(received)
        peer.send(answer)

    asked = proxy_says.asked = []
    return script


def dig(serve, answer, timeout_s=5.0):
    server = serve(proxy_says(answer))
    sock, _ = once.connect(Way([(socket.AF_INET, server.address)], tunnel=CONNECT), timeout_s)
    with sock:
        return sock.recv(10)


def test_after_a_tunnel_is_dug_every_byte_is_the_servers(serve):
    assert dig(serve, b"HTTP/1.1 200 Connection established\r\nVia: x\r\n\r\nhello") == b"hello"
    assert proxy_says.asked == [CONNECT]


@pytest.mark.parametrize(
    ("answer", "text", "status"),
    [
        (
            b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n",
            "HTTP 407 Proxy Authentication Required",
            407,
        ),
        (b"HTTP/1.0 502 Bad Gateway\r\n\r\n", "HTTP 502 Bad Gateway", 502),
        (b"HTTP/1.1 200 OK\r\nVia: x\r\n", "HTTP 200 OK", 200),
        (b"SSH-2.0-x\r\n", "its answer is not HTTP/1.1", 0),
        (b"", "it closed the connection", 0),
        (b"HTTP/1.1 200 OK\r\nX: " + b"x" * 70_000, "HTTP 200 OK", 200),
    ],
    ids=["login", "gateway", "torn", "ssh", "nothing", "endless"],
)
def test_a_proxy_that_opens_no_tunnel(serve, answer, text, status):
    with pytest.raises(ProxyRefusal) as refused:
        dig(serve, answer)
    assert (str(refused.value), refused.value.status) == (text, status)


def test_a_proxy_that_says_nothing():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        way = Way([(socket.AF_INET, listener.getsockname())], tunnel=CONNECT)
        with pytest.raises(ProxyRefusal, match="no answer in time"):
            once.connect(way, 0.05)


def test_a_server_that_says_nothing_to_tls():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        tls = TlsJob(server_name="localhost", verify=True)
        with pytest.raises(HandshakeTimeout):
            once.connect(Way([(socket.AF_INET, listener.getsockname())], tls), 0.05)


def test_the_name_asked_for_and_the_certificate_shown(trusted, authority, tmp_path):
    names, shown = [], []
    ours = authority.issue_cert("us@client.test")
    ours.private_key_and_cert_chain_pem.write_to_path(str(tmp_path / "us.pem"))
    authority.configure_trust(trusted)
    trusted.verify_mode = ssl.CERT_REQUIRED
    trusted.sni_callback = lambda _sock, name, _context: names.append(name)
    listener = socket.create_server(("127.0.0.1", 0))

    def serve():
        with listener, trusted.wrap_socket(listener.accept()[0], server_side=True) as peer:
            shown.append(peer.getpeercert()["subjectAltName"])
            peer.sendall(OK)

    thread = threading.Thread(target=serve)
    thread.start()
    tls = TlsJob(server_name="localhost", verify=True, client_certificate=str(tmp_path / "us.pem"))
    sock, _ = once.connect(Way([(socket.AF_INET, listener.getsockname())], tls), 5.0)
    with sock:
        assert sock.recv(4) == b"HTTP"
    thread.join(5)
    assert names == ["localhost"]
    assert shown == [(("email", "us@client.test"),)]
