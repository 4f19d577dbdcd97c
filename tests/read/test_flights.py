from __future__ import annotations

import numpy as np
import pytest

from loadstone.read.flights import LOST, UNKNOWN_PHASE, flights, take_ended
from loadstone.read.segments import ROWS, Segments
from loadstone.read.stamps import Offsets
from loadstone.recording import CLOCK, END, WireEnd


@pytest.fixture
def read(run):
    """All flights of worker 0's recording."""

    def read():
        segments, offsets, parts, more = Segments(run.recording, 0, keep=True), Offsets(), [], True
        while more:
            rows, more = segments.poll()
            parts.append(rows)
        rows = np.concatenate(parts)
        clock = rows[rows["code"] == CLOCK]
        offsets.add(clock["at_ns"], clock["a"])
        rows = rows[rows["serial"] > 0]
        data = {number: segments.data(number) for number in np.unique(rows["segment"]).tolist()}
        return list(flights(rows, offsets, data))

    return read


def test_reads_are_put_together_by_flight(run, read):
    recorder = run.recorder()
    recorder.clock(0)
    one, two = recorder.start(10), recorder.start(11)
    recorder.read(one, b"a", 105, 100)
    recorder.read(two, b"x", 115, 110)
    recorder.read(one, b"b", 125, 120)
    recorder.end(two, 130, request=11, words="so long", body_bytes=77, status=204, phase=1)
    recorder.end(one, 140, request=10, wire=WireEnd.CLOSED)
    first, second = read()
    assert (first.serial, first.facts.request, first.reads) == (one, 10, [b"a", b"b"])
    assert (first.arrival_ns.tolist(), first.read_ns.tolist()) == ([100, 120], [105, 125])
    assert (first.end_ns, first.facts.end, first.kernel_stamps) == (140, WireEnd.CLOSED, True)
    assert (second.reads, second.words, second.end_ns) == ([b"x"], "so long", 130)
    assert (second.facts.body_bytes, second.facts.status, second.facts.phase) == (77, 204, 1)


def test_a_flight_over_several_segments(run, read):
    recorder = run.recorder()
    serial = recorder.start(1)
    for data in (b"a", b"b", b"c"):
        recorder.read(serial, data, 5)
        recorder.next_segment()
    recorder.end(serial, 9, request=1)
    (flight,) = read()
    assert flight.reads == [b"a", b"b", b"c"]


def test_reads_before_a_resend_do_not_count(run, read):
    recorder = run.recorder()
    other, serial = recorder.start(0), recorder.start(1)
    recorder.read(other, b"other", 1)
    recorder.read(serial, b"first try", 2)
    recorder.resent(serial, 3)
    recorder.read(serial, b"second try", 4)
    recorder.end(serial, 5, request=1, retries=1)
    recorder.end(other, 6, request=0)
    first, second = read()
    assert (first.reads, second.reads) == ([b"other"], [b"second try"])
    assert second.read_ns.tolist() == [4]


def test_reads_before_a_redirect_do_not_count_and_the_first_send_stays(run, read):
    recorder = run.recorder()
    serial = recorder.start(1, sent_ns=5)
    recorder.read(serial, b"307", 6)
    recorder.redirected(serial, 7)
    recorder.read(serial, b"answer", 8)
    recorder.end(serial, 9, request=1, sent_ns=5, redirects=1)
    (flight,) = read()
    assert (flight.reads, flight.facts.sent_ns, flight.facts.redirects) == ([b"answer"], 5, 1)


def test_a_lost_flight_tells_how_often_it_was_sent(run, read):
    recorder = run.recorder()
    serial = recorder.start(1, sent_ns=5)
    recorder.resent(serial, 6)
    recorder.redirected(serial, 7)
    (flight,) = read()
    assert (flight.facts.sent_ns, flight.facts.retries, flight.facts.redirects) == (6, 1, 1)


def test_an_end_without_its_facts_is_none(run, read):
    recorder = run.recorder()
    serial = recorder.start(1, sent_ns=5)
    recorder.append(".dat", b"short")
    recorder.row(serial, END, 9, 5)
    (flight,) = read()
    assert (flight.facts.end, flight.words, flight.end_ns) == (WireEnd.CLIENT, LOST, 9)


def test_one_read_without_a_stamp_makes_the_flight_unstamped(run, read):
    recorder = run.recorder()
    recorder.clock(0)
    serial = recorder.start(1)
    recorder.read(serial, b"a", 5, 4)
    recorder.read(serial, b"b", 7)
    recorder.end(serial, 9, request=1)
    (flight,) = read()
    assert (flight.arrival_ns.tolist(), flight.kernel_stamps) == ([4, 7], False)


def test_a_flight_without_an_end_was_lost_with_its_worker(run, read):
    recorder = run.recorder()
    serial = recorder.start(42, sent_ns=100, due_ns=90)
    recorder.read(serial, b"a", 120)
    (flight,) = read()
    facts = flight.facts
    assert (facts.request, facts.due_ns, facts.sent_ns, facts.end) == (42, 90, 100, WireEnd.CLIENT)
    assert (facts.phase, flight.words, flight.end_ns, flight.reads) == (UNKNOWN_PHASE, LOST, 120, [b"a"])


def test_a_flight_of_which_not_even_the_start_is_known_is_none(run, read):
    run.recorder().read(7, b"a", 120)
    assert read() == []


def test_only_flights_that_ended_before_the_moment_are_taken():
    rows = np.zeros(4, ROWS)
    rows["serial"] = [1, 2, 1, 2]
    rows["code"] = [3, 3, 0xFFFF_FFFC, 0xFFFF_FFFC]
    rows["at_ns"] = [1, 2, 10, 20]
    taken, rest = take_ended(rows, before_ns=20)
    assert (taken["serial"].tolist(), rest["serial"].tolist()) == ([1, 1], [2, 2])
