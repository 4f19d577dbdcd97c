"""How a server's address may be spelled, and how it is reached: prefix, IPv6, TLS, another path."""

from __future__ import annotations

import socket
import ssl

import pytest
import trustme

LOAD = "--model m --streaming --isl 16 --osl 4 --request-count 3"


def paths(server):
    return {call.path for call in server.posts}


@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("{}", "/v1/chat/completions"),
        ("{}/", "/v1/chat/completions"),
        ("http://{}", "/v1/chat/completions"),
        ("HTTP://{}/v1", "/v1/chat/completions"),
        ("{}/v1/", "/v1/chat/completions"),
        ("{}/team/a", "/team/a/v1/chat/completions"),
        ("http://{}/team/a/v1/", "/team/a/v1/chat/completions"),
    ],
)
def test_spellings_of_one_address_reach_one_path(good, scripted, url, path):
    server = scripted()
    run = good(f"--url {url.format(server.url)} {LOAD}")
    assert run.counts == {"ok": 3}
    assert paths(server) == {path}
    assert {call.headers["host"] for call in server.posts} == {server.url}


def test_the_model_is_asked_for_below_the_prefix(good, scripted):
    def get(call, wire):
        if call.path == "/team/v1/models":
            wire.respond({"data": [{"id": "theirs"}, {"id": "other"}]})
        else:
            wire.refuse("404 Not Found", "nothing here")

    server = scripted(get=get)
    run = good(f"--url {server.url}/team/v1 --streaming --isl 16 --osl 4 --request-count 2")
    assert run.report.config["endpoint"]["model"] == "theirs"
    assert {call.body["model"] for call in server.posts} == {"theirs"}


def test_a_path_of_ones_own_replaces_that_of_the_endpoint(good, scripted):
    server = scripted()
    good(f"--url {server.url}/team {LOAD} --endpoint /generate")
    assert paths(server) == {"/team/generate"}


def test_headers_are_sent_as_given(good, scripted):
    server = scripted()
    run = good(f"--url {server.url} {LOAD} -H 'X-Team: a b' -H 'X-Mode:fast' --api-key k")
    for call in server.posts:
        assert (call.headers["x-team"], call.headers["x-mode"]) == ("a b", "fast")
        assert call.headers["authorization"] == "Bearer k"
    ids = [call.headers["x-request-id"] for call in server.posts]
    assert ids == [f"preflight-{run.log.id}", *(f"{run.log.id}-{row}" for row in range(3))]


def test_ipv6(good, scripted):
    try:
        server = scripted(family=socket.AF_INET6)
    except OSError:
        pytest.skip("this machine has no IPv6 loopback")
    run = good(f"--url 'http://[::1]:{server.port}/v1' {LOAD}")
    assert run.counts == {"ok": 3}
    assert {call.headers["host"] for call in server.posts} == {f"[::1]:{server.port}"}


@pytest.fixture(scope="module")
def authority():
    return trustme.CA()


@pytest.fixture
def secure(scripted, authority):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost").configure_cert(context)
    return scripted(tls=context)


def test_a_certificate_that_nobody_vouches_for_is_refused(profile, secure):
    run = profile(f"--url https://localhost:{secure.port} {LOAD}")
    assert (run.code, run.out) == (1, "")
    assert run.err.startswith(f"loadstone: error: https://localhost:{secure.port}: TLS: ")
    assert run.err.endswith("Name its authority with --ca, or use --insecure.\n")
    assert run.err.count("\n") == 1
    assert secure.posts == []
    assert not run.path.exists()


def test_any_certificate_is_accepted_on_request(good, secure):
    run = good(f"--url https://localhost:{secure.port} {LOAD} --insecure")
    assert run.counts == {"ok": 3}
    assert run.requests["first_ns"].null_count() == 0
    assert len(secure.posts) == 4


def test_a_certificate_of_a_known_authority_is_accepted(good, secure, authority, tmp_path):
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    run = good(f"--url https://localhost:{secure.port} {LOAD}", SSL_CERT_FILE=str(tmp_path / "ca.pem"))
    assert run.counts == {"ok": 3}


def test_tls_to_a_server_that_has_none(profile, scripted):
    server = scripted(preflight=lambda call, wire: wire.answer(call))
    run = profile(f"--url https://{server.url} {LOAD} --insecure --connect-timeout-seconds 0.5")
    assert (run.code, run.out) == (1, "")
    assert (
        run.err.startswith(f"loadstone: error: https://{server.url}: TLS failed: ")
        or "cannot connect" in run.err
    )
    assert not run.path.exists()
