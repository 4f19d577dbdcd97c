"""Reaching a server: each way to fail is told in one sentence that says what to do."""

from __future__ import annotations

import errno
import socket
import ssl
import threading

import pytest

from loadstone.config import EndpointConfig
from loadstone.errors import TargetError
from loadstone.load import once
from loadstone.load.job import TlsJob
from loadstone.load.reach import connect, of_tls, reach
from loadstone.wire import url

pytestmark = pytest.mark.timeout(20)


@pytest.fixture
def listen():
    """A port that accepts one connection after the other, with TLS when there is a context, and answers `says`."""
    listeners = []

    def start(context=None, says=b""):
        listener = socket.create_server(("127.0.0.1", 0))
        listeners.append(listener)

        def serve():
            while True:
                try:
                    sock, _ = listener.accept()
                except OSError:
                    return
                sock.settimeout(5)
                try:
                    with sock, context.wrap_socket(sock, server_side=True) if context else sock as peer:
                        if says:
                            peer.recv(65536)
                            peer.sendall(says)
                except OSError:
                    pass  # the client left

        threading.Thread(target=serve, daemon=True).start()
        return listener.getsockname()[1]

    yield start
    for listener in listeners:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()


@pytest.fixture
def closed():
    """A port that nobody listens at."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


def failure(address, **settings):
    with pytest.raises(TargetError) as refused:
        reach(url.parse(address), EndpointConfig(connect_timeout_s=2.0, **settings))
    return str(refused.value)


def test_a_name_is_reached_at_the_address_that_answers(listen):
    port = listen()
    reached = reach(url.parse(f"localhost:{port}"), EndpointConfig())
    assert (reached.family, reached.address) == (socket.AF_INET, ("127.0.0.1", port))
    assert (reached.proxy, reached.tls, reached.tunnel) == (None, None, b"")
    connect(reached, EndpointConfig()).close()


def test_nobody_there(closed):
    assert failure(f"127.0.0.1:{closed}") == (
        f"cannot connect to http://127.0.0.1:{closed}: Connection refused. Is the server running there?"
    )


def test_a_name_that_does_not_exist(monkeypatch):
    def getaddrinfo(*_, **__):
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    assert failure("nowhere.invalid") == (
        "cannot connect to http://nowhere.invalid: Name or service not known. "
        "Check the name in --url, and that it can be looked up from here."
    )
    assert failure("nowhere.invalid", proxy="http://p.invalid:1").endswith(
        "Check the name in --proxy, and that it can be looked up from here."
    )


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (OSError(errno.ENETUNREACH, "Network is unreachable"), "Network is unreachable. Check the address"),
        (OSError(errno.EHOSTUNREACH, "No route to host"), "No route to host. Check the address"),
        (OSError(errno.ECONNRESET, "Connection reset by peer"), "Is it the right port?"),
        (TimeoutError("timed out"), "no connection within 2 s. Check address and port;"),
    ],
)
def test_other_ways_to_fail(monkeypatch, error, words):
    def fail(*_):
        raise error

    monkeypatch.setattr(once, "connect", fail)
    assert words in failure("127.0.0.1:1")


# ---- TLS --------------------------------------------------------------------------------------------


def test_an_authority_of_our_own(listen, trusted, authority, monkeypatch, tmp_path):
    monkeypatch.delenv("SSL_CERT_FILE")
    address = f"https://localhost:{listen(trusted)}"
    told = failure(address)
    assert told.startswith(f"{address}: TLS: ")
    assert told.endswith("Name its authority with --ca, or use --insecure.")
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    reached = reach(url.parse(address), EndpointConfig(ca=str(tmp_path / "ca.pem")))
    assert reached.tls == TlsJob(server_name="localhost", verify=True, ca=str(tmp_path / "ca.pem"))
    assert reach(url.parse(address), EndpointConfig(insecure=True)).tls.verify is False


def test_a_certificate_for_another_name(listen, authority, trusted):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("other.test").configure_cert(context)
    address = f"https://localhost:{listen(context)}"
    told = failure(address)
    assert told.endswith("Give the name that it is for with --server-name, or use --insecure.")
    assert reach(url.parse(address), EndpointConfig(server_name="other.test")).tls.server_name == "other.test"


def test_tls_to_a_port_that_speaks_none(listen):
    port = listen(says=b"HTTP/1.1 400 Bad Request\r\n\r\n")
    told = failure(f"https://localhost:{port}")
    assert told.startswith(f"https://localhost:{port}: TLS failed: ")
    assert told.endswith("Is it an https port?")


def test_tls_to_a_port_that_says_nothing():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        target = url.parse(f"https://127.0.0.1:{listener.getsockname()[1]}")
        with pytest.raises(TargetError, match=r"no handshake within 0\.05 s\. Is it an https port\?"):
            reach(target, EndpointConfig(connect_timeout_s=0.05))


@pytest.mark.parametrize(
    ("reason", "advice"),
    [
        ("TLSV13_ALERT_CERTIFICATE_REQUIRED", "--client-certificate."),
        ("SSLV3_ALERT_HANDSHAKE_FAILURE", "--client-certificate."),
        ("TLSV1_UNRECOGNIZED_NAME", "--server-name."),
        ("WRONG_VERSION_NUMBER", "Is it an https port?"),
    ],
)
def test_what_to_do_about_tls(reason, advice):
    error = ssl.SSLError(1, reason)
    error.reason = reason
    assert of_tls(error).endswith(advice)


def test_an_end_after_the_handshake_may_be_for_want_of_a_certificate():
    error = ssl.SSLEOFError(8, "EOF occurred in violation of protocol (_ssl.c:2427)")
    assert of_tls(error, agreed=True) == (
        "TLS failed: eof occurred in violation of protocol. "
        "The server may want a certificate of ours, or another one: --client-certificate."
    )


# ---- proxies ----------------------------------------------------------------------------------------


def test_a_proxy_is_what_is_connected_to(listen):
    port = listen()
    reached = reach(
        url.parse("http://nowhere.invalid"), EndpointConfig(proxy=f"http://us:pw@127.0.0.1:{port}")
    )
    assert reached.address == ("127.0.0.1", port)
    assert (reached.proxy.userinfo, reached.tunnel) == ("us:pw", b"")


def test_a_proxy_that_is_not_there(closed):
    assert failure("http://h", proxy=f"http://us:hunter2@127.0.0.1:{closed}") == (
        f"cannot connect to the proxy http://127.0.0.1:{closed}: Connection refused. Is the proxy running there?"
    )


@pytest.mark.parametrize(
    ("says", "words"),
    [
        (b"HTTP/1.1 407 Login hunter2\r\n\r\n", "HTTP 407 Login ***. Give user and password: --proxy"),
        (b"HTTP/1.1 403 No\r\n\r\n", "HTTP 403 No. Ask whoever runs it"),
        (b"HTTP/1.1 502 Bad Gateway\r\n\r\n", "HTTP 502 Bad Gateway. Can it reach the server?"),
        (b"HTTP/1.1 405 \x1b[2J\r\n\r\n", "HTTP 405 \\x1b[2J. It takes no CONNECT"),
        (b"SSH-2.0\r\n", "its answer is not HTTP/1.1. Is it an HTTP proxy?"),
    ],
)
def test_a_proxy_that_opens_no_tunnel(listen, says, words):
    port = listen(says=says)
    told = failure("https://h.invalid", proxy=f"http://us:hunter2@127.0.0.1:{port}")
    assert told.startswith(f"the proxy http://127.0.0.1:{port} opens no tunnel to h.invalid: {words}")
    assert "hunter2" not in told
