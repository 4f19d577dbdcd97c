"""Without epoll, timerfd and kernel stamps, as on other systems: the same run, and the report says what is missing."""

from __future__ import annotations

import pytest


@pytest.fixture(scope="module")
def run(good, engine):
    return good(
        f"--url {engine.url} --streaming --isl 16 --osl 4 --extra-inputs ignore_eos:true --request-rate 50"
        " --request-count 30 --workers 2",
        LOADSTONE_PORTABLE="1",
    )


def test_nothing_is_lost(run, engine):
    assert run.counts == {"ok-length": 30}
    assert len(engine.truth(run, 31)) == 31
    assert run.requests["output_tokens"].to_list() == [4] * 30


def test_an_arrival_is_the_moment_of_reading(run):
    assert run.requests["kernel_stamps"].to_list() == [False] * 30
    assert run.requests["arrival_ns"].to_list() == run.requests["read_ns"].to_list()
    assert (run.requests["first_ns"] == run.requests["first_read_ns"]).all()


def test_no_token_is_seen_before_the_engine_sent_it(run, engine):
    truth = engine.truth(run, 31)
    for row in run.requests.iter_rows(named=True):
        told = truth[row["request_id"]]
        assert row["sent_ns"] <= told.received_ns + 50_000
        assert told.first_sent_ns <= row["first_ns"]
        assert told.last_sent_ns <= row["last_ns"]


def test_the_report_says_so(run):
    check = run.check("kernel_stamps")
    assert check.verdict in ("NOTE", "DEGRADED")
    assert "there are no kernel stamps here" in check.finding
    assert "there are no kernel stamps here" in " ".join(run.out.split())
    assert run.number("client_lag") is None
    assert "no kernel stamps" in run.report.metrics["client_lag"].reason
