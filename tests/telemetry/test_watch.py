"""Main's side: which pages are read, with what, and that the run neither fails nor waits for it."""

from __future__ import annotations

import os
import signal
import socket

import pytest

from loadstone import folder
from loadstone.config import Config, EndpointConfig, ServerConfig
from loadstone.load.job import TlsJob
from loadstone.load.reach import Reached
from loadstone.telemetry import watch as watching
from loadstone.telemetry.watch import Watch, page_jobs
from loadstone.wire import proxy, url

from .conftest import PAGE, http


def reached(address, **more):
    target = url.parse(address)
    return Reached(target, int(socket.AF_INET), ("127.0.0.1", target.port), **more)


def config(*pages, **endpoint):
    return Config(endpoint=EndpointConfig(**endpoint), server=ServerConfig(metrics_urls=pages))


def jobs(given, *servers):
    return page_jobs(given, servers, "r1")


def test_the_page_of_a_server_is_behind_its_base():
    [job] = jobs(
        config(api_key="sk-key12345", headers=("X-Team: a",)), reached("http://127.0.0.1:8000/base/v1")
    )
    assert (job.name, job.serves) == ("http://127.0.0.1:8000/base/metrics", (0,))
    assert job.addresses == [(int(socket.AF_INET), ("127.0.0.1", 8000))]
    lines = job.request.decode().split("\r\n")
    assert lines[0] == "GET /base/metrics HTTP/1.1"
    assert {
        "Host: 127.0.0.1:8000",
        "Authorization: Bearer sk-key12345",
        "X-Team: a",
        "Connection: close",
    } <= set(lines)
    assert "Accept: text/plain;version=0.0.4, */*;q=0.1" in lines
    assert "sk-key12345" in job.hidden


def test_two_addresses_of_one_server_have_one_page():
    found = jobs(config(), reached("127.0.0.1:8000"), reached("127.0.0.1:8000/v1"), reached("127.0.0.1:8001"))
    assert [(job.name, job.serves) for job in found] == [
        ("http://127.0.0.1:8000/metrics", (0, 1)),
        ("http://127.0.0.1:8001/metrics", (2,)),
    ]


def test_a_page_of_its_own_address_is_read_beside_them_once():
    given = config(
        "localhost:9400", "http://127.0.0.1:8000/metrics", "http://gpu:9400/v1/metrics?key=hush-hush1"
    )
    found = jobs(given, reached("127.0.0.1:8000"))
    assert [(job.name, job.serves, job.host) for job in found] == [
        ("http://127.0.0.1:8000/metrics", (0,), ""),
        ("http://localhost:9400/metrics", (), "localhost"),
        ("http://gpu:9400/v1/metrics?key=***", (), "gpu"),
    ]
    assert found[2].request.startswith(b"GET /v1/metrics?key=hush-hush1 HTTP/1.1\r\n")


@pytest.mark.parametrize(
    ("page", "same"),
    [
        ("https://API.example:8000/stats", True),
        ("https://api.example:9400", False),
        ("http://api.example:8000", False),
        ("https://other.example:8000", False),
    ],
)
def test_credentials_go_to_scheme_host_and_port_of_ours_and_to_no_other(page, same):
    given = config(
        page, api_key="sk-key12345", headers=("X-Team: a",), client_certificate="me.pem", client_key="me.key"
    )
    _, job = jobs(given, reached("https://api.example:8000/v1"))
    assert (b"Authorization: Bearer sk-key12345" in job.request) is same
    assert (b"X-Team: a" in job.request) is same
    assert bool(job.tls and (job.tls.client_certificate or job.tls.client_key)) is same
    assert "sk-key12345" in job.hidden


def test_tls_is_that_of_the_run_for_a_host_of_ours():
    given = config("https://127.0.0.1:9400", "https://gpu:9400", insecure=True, ca="ca.pem")
    tls = TlsJob(server_name="127.0.0.1", verify=False, ca="ca.pem")
    own, ours, other = jobs(given, reached("https://127.0.0.1:8000", tls=tls))
    assert own.tls == ours.tls == tls
    assert other.tls == TlsJob(server_name="gpu", verify=True)


def test_a_proxy_is_gone_through_for_a_host_of_ours():
    through = proxy.parse("http://user:pass@127.0.0.1:3128")
    given = config("http://127.0.0.1:9400", "https://127.0.0.1:9401", "http://gpu:9400")
    own, plain, secure, other = jobs(given, reached("127.0.0.1:8000", proxy=through))
    assert own.request.startswith(b"GET http://127.0.0.1:8000/metrics HTTP/1.1\r\n")
    assert plain.request.startswith(b"GET http://127.0.0.1:9400/metrics HTTP/1.1\r\n")
    assert secure.tunnel.startswith(b"CONNECT 127.0.0.1:9401 HTTP/1.1\r\n")
    assert own.addresses == plain.addresses == secure.addresses
    assert (other.addresses, other.tunnel) == ([], b"")
    assert b"Proxy-Authorization" not in other.request


def watched(tmp_path, server, given=None):
    return Watch(tmp_path, given or config(), [reached(f"127.0.0.1:{server.port}")], "r1")


def test_pages_are_read_before_and_after(tmp_path, raw):
    server = raw(http(PAGE))
    with watched(tmp_path, server) as watch:
        watch.look()
        before = len(server.requests)
        watch.end()
        watch.close()
    [log] = watch.logs
    assert watch.fault is None
    assert (log.scrapes, log.failed) == (before + 1, 0)
    assert (tmp_path / folder.SERVER_METRICS).exists()
    assert list(watch.notices()) == []


def test_nothing_is_started_where_nobody_wants_it(tmp_path, raw):
    server = raw(http(PAGE))
    given = Config(server=ServerConfig(metrics=False))
    with watched(tmp_path, server, given) as watch:
        watch.look()
        watch.end()
        watch.close()
    assert (watch.logs, watch.fault, server.requests, list(tmp_path.iterdir())) == ([], None, [], [])


def test_a_process_that_dies_costs_its_pages_and_nothing_else(tmp_path, raw):
    with watched(tmp_path, raw(http(PAGE))) as watch:
        watch.look()
        (tmp_path / f"{folder.SERVER_METRICS}.new").touch()
        os.kill(watch._child.pid, signal.SIGKILL)
        watch.look()
        watch.end()
        watch.close()
    assert (
        watch.fault == "the process that read the servers' pages died (killed by signal 9); see loadstone.log"
    )
    [log] = watch.logs
    assert (log.serves, log.scrapes, log.failed, log.samples) == ((0,), None, None, None)
    assert list(tmp_path.glob("*.new")) == []


def test_one_that_does_not_end_is_left_alone(tmp_path, raw, monkeypatch):
    monkeypatch.setattr(watching, "END_S", 0.1)
    with watched(tmp_path, raw(http(PAGE))) as watch:
        watch.look()
        os.kill(watch._child.pid, signal.SIGSTOP)
        watch.end()
        watch.close()
    assert "was not done in time, then killed" in watch.fault


@pytest.mark.parametrize(("sent", "stays"), [(True, True), (False, False)])
def test_of_a_run_that_fails_stays_what_was_read_once_there_are_requests(tmp_path, raw, sent, stays):
    if sent:
        (tmp_path / folder.RUN).touch()
    with pytest.raises(KeyboardInterrupt), watched(tmp_path, raw(http(PAGE))) as watch:
        watch.look()
        raise KeyboardInterrupt
    assert (tmp_path / folder.SERVER_METRICS).exists() == stays


def test_a_page_that_was_asked_for_and_never_came_is_told(tmp_path, raw):
    server, other = raw(http("", "404 Not Found")), raw(http("", "404 Not Found"))
    with watched(tmp_path, server, config(other.url)) as watch:
        watch.look()
        watch.end()
        watch.close()
    assert list(watch.notices()) == [f"{other.url}/metrics was not read (--server-metrics): HTTP 404."]
