"""What main and a worker tell each other survives the way."""

from __future__ import annotations

import socket

import msgspec
import pytest

from loadstone.load.job import (
    BeginOrder,
    Job,
    Order,
    PhaseDone,
    PhaseOrder,
    PhaseSent,
    Quit,
    Ready,
    StopOrder,
    TlsJob,
    Word,
)


@pytest.fixture
def job(job_for, tmp_path):
    return job_for(
        tmp_path,
        ("::1", 8000, 0, 0),
        family=socket.AF_INET6,
        tls=TlsJob(server_name="h", verify=True),
        head=bytes(range(256)),
    )


def test_a_job_is_read_as_it_was_told(job):
    line = msgspec.json.encode(job)
    assert b"\n" not in line
    told = msgspec.json.decode(line, type=Job)
    assert told == job
    [target] = told.targets
    assert target.address == ("::1", 8000, 0, 0)
    assert isinstance(target.address, tuple)


@pytest.mark.parametrize(
    "order",
    [
        PhaseOrder(number=1, rows_fd=3, first_row=2, start_ns=2**62, duration_ns=7, slots=((0, 1), (5, 2))),
        PhaseOrder(number=1, rows_fd=3, first_row=2, rows=4, prefill=((0, 0),), drain_queue=True),
        BeginOrder(number=1, start_ns=2),
        StopOrder(stop_ns=1, cut_ns=2),
        Quit(),
    ],
)
def test_orders_are_told_apart(order):
    assert msgspec.json.decode(msgspec.json.encode(order), type=Order) == order


@pytest.mark.parametrize(
    "word",
    [
        Ready(kernel_stamps=True),
        PhaseSent(number=0, start_ns=1, end_ns=2),
        PhaseDone(number=0, start_ns=1, flights=2, reads=3, cpu_ns=4, wall_ns=5, end_ns=6, starved=7),
        PhaseDone.never(2, 9),
    ],
)
def test_words_are_told_apart(word):
    assert msgspec.json.decode(msgspec.json.encode(word), type=Word) == word


def test_a_phase_that_never_began_says_so():
    assert not PhaseDone.never(1, now=5).begun
    assert PhaseDone(number=0, start_ns=1, flights=0, reads=0, cpu_ns=0, wall_ns=0, end_ns=6, starved=0).begun
