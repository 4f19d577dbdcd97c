"""The phases of a request over TLS, against a server that holds its head back, and then its last word."""

from __future__ import annotations

import ssl
import time

import pytest
import trustme

HEAD_S, LAST_S = 0.05, 0.08
LOAD = "--model m --streaming --isl 16 --osl 2 --request-count 4 --concurrency 1 --insecure"


@pytest.fixture
def secure(scripted):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    trustme.CA().issue_cert("localhost").configure_cert(context)

    def post(call, wire):
        time.sleep(HEAD_S)
        wire.begin()
        wire.chunk(wire.delta(content="one"))
        time.sleep(LAST_S)
        wire.chunk(wire.delta(content=" two"))
        wire.chunk(wire.delta(finish="length"))
        wire.chunk(b"data: [DONE]\n\n")
        wire.chunk(b"")

    return scripted(post, tls=context)


@pytest.mark.parametrize(("reuse", "opened"), [("never", 4), ("pooled", 1)])
def test_connect_tls_waiting_and_receiving_are_told_apart_and_add_up(profile, secure, reuse, opened):
    run = profile(f"--url https://localhost:{secure.port} {LOAD} --connection-reuse-strategy {reuse}")
    assert sum(run.counts.values()) == run.counts["ok-length"] == 4
    rows = run.requests.to_dicts()
    assert sum(row["connect_ns"] is not None for row in rows) == opened
    for row in rows:
        moments = ["due_ns", "connect_ns", "tcp_ns", "connected_ns", "sent_ns", "written_ns", "answered_ns"]
        came = [row[name] for name in (*moments, "done_ns") if row[name] is not None]
        assert came == sorted(came)
        assert len(came) == (8 if row["connect_ns"] else 5)
        if row["connect_ns"]:
            assert row["connect_ns"] < row["tcp_ns"] < row["connected_ns"]
        assert row["answered_ns"] - row["sent_ns"] >= HEAD_S * 1e9
        assert row["done_ns"] - row["sent_ns"] >= (HEAD_S + LAST_S) * 1e9
        assert row["answered_ns"] <= row["first_ns"] < row["done_ns"]
    metrics = run.report.metrics
    phases = ("blocked", "dns_lookup", "connecting", "tls_handshaking", "sending", "waiting", "receiving")
    means = [metrics[f"http_req_{name}"].mean for name in phases]
    assert sum(means) == pytest.approx(metrics["http_req_total"].mean, rel=1e-9)
    assert metrics["http_req_connection_reused"].mean == 100 * (4 - opened) / 4
    assert (metrics["http_req_connecting"].max > 0) and (metrics["http_req_tls_handshaking"].max > 0)
    assert (metrics["http_req_tls_handshaking"].min > 0) == (opened == 4)
