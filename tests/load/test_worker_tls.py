"""A worker against servers that speak TLS, and some that do not."""

from __future__ import annotations

import ssl

import pytest

from loadstone.load.job import TlsJob
from loadstone.load.tls import Tls
from loadstone.recording import WireEnd

MS = 1_000_000
COMPLETE, CLOSED, TLS = WireEnd.COMPLETE, WireEnd.CLOSED, WireEnd.TLS
pytestmark = pytest.mark.timeout(10)


@pytest.fixture(autouse=True)
def _form(fly, portable):
    fly.portable = portable


def answering(peer):
    peer.serve()


def test_answers_over_tls(fly, trusted):
    flew = fly(answering, requests=5, context=trusted)
    assert flew.ends == [COMPLETE] * 5
    assert flew.server.connections == 1
    assert all(flown.data == flew.flights[0].data for flown in flew.flights)
    assert flew.flights[0].data.startswith(b"HTTP/1.1 200 OK\r\n")
    assert flew.flights[0].facts.begun_ns
    facts = flew.flights[0].facts
    assert facts.connect_ns < facts.tcp_ns < facts.connected_ns


def test_a_large_request_over_tls(fly, trusted):
    flew = fly(answering, requests=2, body=b"x" * (2 << 20), context=trusted)
    assert flew.ends == [COMPLETE] * 2
    assert [len(request) > 2 << 20 for request in flew.server.requests] == [True, True]


def test_an_answer_larger_than_a_read_over_tls(fly, trusted):
    flew = fly(
        lambda peer: peer.serve(peer.HEAD + peer.TOKEN * 20_000 + peer.DONE + peer.LAST),
        requests=2,
        context=trusted,
    )
    assert flew.ends == [COMPLETE] * 2
    assert [flown.data.count(b'"content":"a"') for flown in flew.flights] == [20_000] * 2


def test_tls_1_2(fly, trusted):
    trusted.maximum_version = ssl.TLSVersion.TLSv1_2
    assert fly(answering, requests=2, context=trusted).ends == [COMPLETE] * 2


def test_a_certificate_of_nobody_we_know(fly, trusted, monkeypatch):
    monkeypatch.delenv("SSL_CERT_FILE")
    flew = fly(answering, requests=2, context=trusted)
    assert flew.ends == [TLS] * 2
    assert all("certificate verify failed" in flown.words for flown in flew.flights)
    assert all(flown.facts.tcp_ns > 0 == flown.facts.connected_ns for flown in flew.flights)
    assert flew.server.requests == []


def test_a_certificate_for_another_name(fly, trusted):
    (flown,) = fly(answering, context=trusted, tls=TlsJob(server_name="other.example", verify=True)).flights
    assert flown.end == TLS
    assert "Hostname mismatch" in flown.words


def test_an_address_instead_of_a_name(fly, trusted):
    assert fly(answering, context=trusted, tls=TlsJob(server_name="127.0.0.1", verify=True)).ends == [
        COMPLETE
    ]


def test_insecure_takes_any_certificate(fly, trusted, monkeypatch):
    monkeypatch.delenv("SSL_CERT_FILE")
    job = TlsJob(server_name="other.example", verify=False)
    assert fly(answering, context=trusted, tls=job).ends == [COMPLETE]


def test_a_server_that_never_shakes_hands(fly):
    def script(peer):
        peer.hold()

    job = TlsJob(server_name="localhost", verify=True)
    (flown,) = fly(script, tls=job, connect_timeout_ns=50 * MS).flights
    assert (flown.end, flown.sends) == (WireEnd.TIMEOUT_CONNECT, [])
    assert flown.words == "no connection within 0.05 s"


@pytest.mark.parametrize("said", [b"HTTP/1.1 400 Bad Request\r\n\r\n", b""], ids=["plain", "nothing"])
def test_a_server_that_speaks_no_tls(fly, said):
    def script(peer):
        peer.sock.recv(65536)
        peer.send(said)

    (flown,) = fly(script, tls=TlsJob(server_name="localhost", verify=True)).flights
    assert flown.end == TLS
    assert flown.words


def test_a_kept_alive_connection_closed_by_tls_is_replaced(fly, trusted):
    def first(peer):
        peer.request()
        peer.send(peer.ANSWER)
        peer.request()
        peer.close()

    flew = fly(first, answering, requests=3, context=trusted)
    assert flew.ends == [COMPLETE] * 3
    assert [flown.facts.retries for flown in flew.flights] == [0, 1, 0]


@pytest.mark.parametrize("body", [b"data: {}\n\n", b"x" * 100_000])
def test_the_goodbye_of_tls_ends_a_message_without_length(fly, trusted, body):
    def script(peer):
        peer.request()
        peer.send(b"HTTP/1.1 200 OK\r\n\r\n" + body)
        peer.close()

    (flown,) = fly(script, context=trusted, timeout_ns=1_000 * MS).flights
    assert flown.end == COMPLETE
    assert flown.data.endswith(b"\r\n\r\n" + body)


def test_a_stream_cut_by_the_goodbye_of_tls(fly, trusted):
    def script(peer):
        peer.request()
        peer.send(peer.HEAD, peer.TOKEN)
        peer.close()

    assert fly(script, context=trusted, timeout_ns=1_000 * MS).ends == [CLOSED]


def test_a_server_that_closed_an_idle_connection_costs_no_retry(fly, trusted):
    def first(peer):
        peer.request()
        peer.send(peer.ANSWER)
        peer.close()

    flew = fly(first, answering, due=[0, 300 * MS], context=trusted)
    assert flew.ends == [COMPLETE] * 2
    assert [flown.facts.retries for flown in flew.flights] == [0, 0]


def test_tls_that_cannot_take_a_request_is_a_broken_connection(fly, trusted, monkeypatch):
    """As with a server that wants to shake hands anew while the connection is idle."""
    encrypt, left = Tls.encrypt, [1]

    def refusing(self, plain):
        if not left:
            left.append(1)
            raise ssl.SSLWantReadError
        left.pop()
        return encrypt(self, plain)

    monkeypatch.setattr(Tls, "encrypt", refusing)
    flew = fly(answering, answering, requests=2, context=trusted)
    assert flew.ends == [COMPLETE] * 2
    assert flew.flights[1].facts.retries == 1
