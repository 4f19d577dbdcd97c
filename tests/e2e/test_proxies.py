"""Through a proxy: plain requests with their whole address, TLS in a tunnel; its refusals are told, its password is not."""

from __future__ import annotations

import base64
import socket
import ssl
import threading

import pytest
import trustme

LOAD = "--model m --streaming --isl 16 --osl 4 --request-count 6 --concurrency 2"
LOGIN = "Basic " + base64.b64encode(b"us:pass/hunter2").decode()


class Proxy:
    """An HTTP proxy on the loopback: passes on bytes, both ways, until one side closes."""

    def __init__(self, login=None):
        self.heads = []
        self.refuse = None
        self._login = login
        self._socks = []
        self._threads = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self._spawn(self._accept)

    def _spawn(self, call, *arguments):
        self._threads.append(threading.Thread(target=call, args=arguments, daemon=True))
        self._threads[-1].start()

    def _accept(self):
        while True:
            try:
                sock, _ = self._listener.accept()
            except OSError:
                return
            self._socks.append(sock)
            self._spawn(self._serve, sock)

    def _serve(self, client):
        try:
            while (request := self._head(client)) is not None:
                head, rest = request
                self.heads.append(head)
                if self._login and f"Proxy-Authorization: {self._login}" not in head:
                    client.sendall(b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n")
                elif self.refuse:
                    client.sendall(self.refuse)
                else:
                    self._forward(client, head, rest)
                    return
        except OSError:
            pass  # one of the two left
        finally:
            client.close()

    @staticmethod
    def _head(client):
        data = b""
        while b"\r\n\r\n" not in data:
            received = client.recv(65536)
            if not received:
                return None
            data += received
        head, _, rest = data.partition(b"\r\n\r\n")
        return head.decode("latin-1"), rest

    def _forward(self, client, head, rest):
        method, target, _ = head.split(" ", 2)
        place = target if method == "CONNECT" else target.removeprefix("http://").partition("/")[0]
        host, _, port = place.rpartition(":")
        server = socket.create_connection((host, int(port)))
        self._socks.append(server)
        if method == "CONNECT":
            client.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
        else:
            path = target.removeprefix(f"http://{place}")
            lines = [line for line in head.split("\r\n") if not line.startswith("Proxy-")]
            server.sendall(("\r\n".join(lines) + "\r\n\r\n").replace(target, path, 1).encode() + rest)
            # One request a connection is enough here: the next one needs a head of its own again.
        self._spawn(self._pump, server, client)
        self._pump(client, server)

    @staticmethod
    def _pump(source, sink):
        try:
            while data := source.recv(65536):
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)
        except OSError:
            pass  # one of the two left

    def close(self):
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for sock in self._socks:
            try:
                sock.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
        for thread in self._threads:
            thread.join(10)
        for sock in self._socks:
            sock.close()


@pytest.fixture
def proxy():
    proxies = []

    def start(login=None):
        proxies.append(Proxy(login))
        return proxies[-1]

    yield start
    for one in proxies:
        one.close()


@pytest.fixture(scope="module")
def authority():
    return trustme.CA()


@pytest.fixture
def secure(scripted, authority, tmp_path):
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost").configure_cert(context)
    server = scripted(tls=context)
    server.ca = tmp_path / "ca.pem"
    return server


def leaks(text):
    return [line[:200] for line in text.splitlines() if "hunter2" in line or LOGIN.split()[1] in line]


def assert_nothing_leaks(run):
    files = [path for path in run.path.rglob("*") if path.is_file()]
    assert [path for path in files if leaks(path.read_bytes().decode("latin-1"))] == []
    assert leaks(run.out + run.err) == []


def test_plain_requests_name_the_whole_address(good, scripted, proxy):
    server, by = scripted(), proxy(LOGIN)
    run = good(
        f"--url {server.url} {LOAD} --proxy http://us:pass%2Fhunter2@{by.address} --connection-reuse-strategy never"
    )
    assert run.counts == {"ok": 6}
    posts = [head for head in by.heads if head.startswith("POST")]
    assert len(posts) == 7
    assert {head.split(" ")[1] for head in posts} == {f"http://{server.url}/v1/chat/completions"}
    assert {call.path for call in server.posts} == {"/v1/chat/completions"}
    assert run.report.config["endpoint"]["proxy"] == f"http://***@{by.address}"
    assert_nothing_leaks(run)


def test_tls_goes_through_a_tunnel_that_nobody_else_looks_into(good, secure, proxy):
    by = proxy(LOGIN)
    url = f"https://localhost:{secure.port}"
    run = good(
        f"--url {url} {LOAD} --ca {secure.ca} --proxy http://us:pass%2Fhunter2@{by.address} --api-key sk-1"
    )
    assert run.counts == {"ok": 6}
    assert {head.split("\r\n")[0] for head in by.heads} == {f"CONNECT localhost:{secure.port} HTTP/1.1"}
    assert {call.headers["authorization"] for call in secure.posts} == {"Bearer sk-1"}
    assert not any("proxy-authorization" in call.headers for call in secure.posts)
    assert_nothing_leaks(run)


def test_variables_for_proxies_are_not_heeded(good, scripted):
    server = scripted()
    nowhere = "http://127.0.0.1:1"
    assert good(
        f"--url {server.url} {LOAD}", http_proxy=nowhere, https_proxy=nowhere, ALL_PROXY=nowhere
    ).counts == {"ok": 6}


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_proxy_that_wants_a_login(profile, proxy, scheme):
    by = proxy(LOGIN)
    run = profile(f"--url {scheme}://localhost:1 {LOAD} --proxy http://us:wrong-hunter2@{by.address}")
    assert (run.code, run.out) == (1, "")
    assert "407" in run.err
    assert run.err.endswith("Give user and password: --proxy http://USER:PASSWORD@HOST:PORT.\n")
    assert leaks(run.err) == []
    assert not run.path.exists()


@pytest.mark.parametrize(
    ("url", "answer", "advice"),
    [
        (
            "https://localhost:1",
            b"HTTP/1.1 403 Forbidden\r\n\r\n",
            "Ask whoever runs it to allow that host and port.",
        ),
        ("https://localhost:1", b"HTTP/1.1 502 Bad Gateway\r\n\r\n", "Can it reach the server?"),
        (
            "http://localhost:1",
            b"HTTP/1.1 502 Bad\r\nContent-Length: 0\r\n\r\n",
            "Can the proxy reach the server?",
        ),
    ],
)
def test_a_proxy_that_refuses(profile, proxy, url, answer, advice):
    by = proxy()
    by.refuse = answer
    run = profile(f"--url {url} {LOAD} --proxy http://{by.address}")
    assert (run.code, run.out) == (1, "")
    assert run.err.endswith(f"{advice}\n")
    assert not run.path.exists()


def test_a_proxy_that_is_not_there(profile):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    run = profile(f"--url h.invalid {LOAD} --proxy http://us:hunter2@127.0.0.1:{port}")
    assert run.code == 1
    assert run.err == (
        f"loadstone: error: cannot connect to the proxy http://127.0.0.1:{port}: Connection refused. "
        "Is the proxy running there?\n"
    )


def test_our_certificate_and_the_name_that_is_asked_for(good, scripted, authority, tmp_path):
    names = []
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("inner.test").configure_cert(context)
    authority.configure_trust(context)
    context.verify_mode = ssl.CERT_REQUIRED
    context.sni_callback = lambda _sock, name, _context: names.append(name)
    server = scripted(tls=context)
    ours = authority.issue_cert("us.test")
    ours.cert_chain_pems[0].write_to_path(str(tmp_path / "cert.pem"))
    ours.private_key_pem.write_to_path(str(tmp_path / "key.pem"))
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    run = good(
        f"--url https://127.0.0.1:{server.port} {LOAD} --server-name inner.test --ca {tmp_path}/ca.pem "
        f"--client-certificate {tmp_path}/cert.pem --client-key {tmp_path}/key.pem"
    )
    assert run.counts == {"ok": 6}
    assert set(names) == {"inner.test"}


def test_a_server_that_wants_a_certificate_of_ours_says_so(profile, scripted, authority, tmp_path):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost").configure_cert(context)
    authority.configure_trust(context)
    context.verify_mode = ssl.CERT_REQUIRED
    server = scripted(tls=context)
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    run = profile(f"--url https://localhost:{server.port} {LOAD} --ca {tmp_path}/ca.pem")
    assert (run.code, run.out) == (1, "")
    assert run.err.endswith(
        "The server may want a certificate of ours, or another one: --client-certificate.\n"
    )
