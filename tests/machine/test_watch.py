from __future__ import annotations

import os
from itertools import groupby

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadstone.folder import MachineSpan
from loadstone.machine import Machine
from loadstone.machine.readings import NULLABLE, Readings
from loadstone.machine.watch import MOST_SPANS, longer, merge

SECOND = 1_000_000_000


def reading(at_s, **more):
    """Two cores since a start `at_s` seconds ago, half busy, a tenth stolen."""
    counters = dict.fromkeys(NULLABLE, 0) | {"steal_ns": round(at_s * 0.2 * SECOND)}
    return Readings(
        **{
            "cpu_ns": round(at_s * 2 * SECOND), "busy_ns": round(at_s * SECOND), "mhz": 2000.0,
            "available_bytes": 1 << 30, **counters, **more,
        }
    )  # fmt: skip


class Played:
    """A machine whose moments and readings are given."""

    def __init__(self, processes=dict):
        self.at_s = 0.0
        self.more = {}
        self.machine = Machine(
            processes, lambda: reading(self.at_s, **self.more), lambda: round(self.at_s * SECOND)
        )

    def look(self, at_s, phase, **more):
        self.at_s, self.more = at_s, more
        self.machine.look(phase)

    @property
    def spans(self):
        return self.machine.log().spans


def test_a_phase_is_seen_from_its_begin_to_its_end():
    played = Played()
    for at_s, phase in ((10.0, "warmup"), (10.3, "measured"), (11.0, "measured"), (11.8, None), (20, None)):
        played.look(at_s, phase)
    assert [(span.phase, span.start_ns / SECOND, span.end_ns / SECOND) for span in played.spans] == [
        ("warmup", 10, 10.3),
        ("measured", 10.3, 11.8),
    ]


def test_looks_less_than_a_second_apart_are_one():
    played = Played()
    for quarter in range(9):
        played.look(quarter / 4, "measured")
    assert [span.end_ns / SECOND for span in played.spans] == [1, 2]


def test_a_span_is_a_difference():
    played = Played()
    played.look(10, "measured", tcp_retransmits=5)
    played.look(11, "measured", tcp_retransmits=12)
    (span,) = played.spans
    assert (span.cpu_ns, span.busy_ns, span.steal_ns) == (2 * SECOND, SECOND, 200_000_000)
    assert (span.most_stolen, span.tcp_retransmits, span.mhz_min) == (0.1, 7, 2000)


def test_what_is_not_known_at_either_end_or_went_back_is_null():
    played = Played()
    played.look(10, "measured", tcp_drops=None, packet_drops=9)
    played.look(11, "measured", tcp_drops=None, packet_drops=3)
    (span,) = played.spans
    assert (span.tcp_drops, span.packet_drops) == (None, None)
    assert played.machine.log().reasons == {"tcp_drops": "/proc/net/netstat is not there."}


def test_a_moment_is_too_short_for_a_share_of_stolen_time():
    played = Played()
    played.look(10, "measured")
    played.look(10.2, None)
    assert played.spans[0].most_stolen is None


def test_a_long_run_has_few_spans_and_its_sums_are_exact():
    played = Played()
    for second in range(3601):
        played.look(second, "measured")
    spans = played.spans
    assert MOST_SPANS / 2 <= len(spans) <= MOST_SPANS
    assert (sum(span.cpu_ns for span in spans), spans[-1].end_ns) == (7200 * SECOND, 3600 * SECOND)
    assert [span.most_stolen for span in spans] == pytest.approx([0.1] * len(spans))
    lengths_s = {(span.end_ns - span.start_ns) / SECOND for span in spans[:-1]}
    assert lengths_s == {32}


def test_processor_time_of_our_processes():
    played = Played(lambda: {"main": os.getpid(), "gone": 2**22 + 1})
    played.look(1, "measured")
    sum(range(300_000))
    played.look(2, "measured")
    log = played.machine.log()
    assert list(log.processes_ns) == ["main"]
    assert log.processes_ns["main"] == log.spans[0].ours_ns


SPANS = st.builds(
    MachineSpan,
    phase=st.sampled_from("ab"),
    start_ns=st.integers(0, 100),
    end_ns=st.integers(100, 200),
    cpu_ns=st.integers(0, 100),
    busy_ns=st.integers(0, 100),
    ours_ns=st.integers(0, 100),
    steal_ns=st.none() | st.integers(0, 100),
    most_stolen=st.none() | st.floats(0, 1),
    mhz_min=st.none() | st.floats(1, 5000),
    least_available_bytes=st.integers(0, 100),
)


@given(st.lists(SPANS, max_size=20), st.integers(1, 300))
def test_longer_spans_keep_sums_and_never_mix_phases(spans, least_ns):
    after = longer(spans, least_ns)
    for phase in "ab":
        before = [span for span in spans if span.phase == phase]
        assert sum(span.cpu_ns for span in after if span.phase == phase) == sum(
            span.cpu_ns for span in before
        )
    assert _stretches(after) == _stretches(spans)


def _stretches(spans):
    """The phases in their order, each once for every time it was on."""
    return [phase for phase, _ in groupby(span.phase for span in spans)]


@given(SPANS, SPANS)
def test_two_spans_as_one(one, other):
    both = merge(one, other)
    assert (both.steal_ns is None) == (one.steal_ns is None or other.steal_ns is None)
    known = [span.most_stolen for span in (one, other) if span.most_stolen is not None]
    assert both.most_stolen == max(known, default=None)
