"""What ends a load before its time, and limits that change while it lasts: slots, and requests before their first token."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest
from tests.e2e.shapes import Recorded, levels, peak

SHORT = "--streaming --isl 16 --osl 4 --extra-inputs ignore_eos:true"
LONGER = "--streaming --isl 16 --osl 10 --extra-inputs ignore_eos:true"
"""About 110 ms at 10 ms a step."""


@pytest.fixture(scope="module")
def ten_ms(simulate):
    return simulate("--step-ms 10")


# ---- a mean that is known well enough -------------------------------------------------------------------


@pytest.mark.slow
def test_a_load_stops_when_a_mean_is_known_well_enough(good, ten_ms):
    run = good(
        f"--url {ten_ms.url} {SHORT} --concurrency 8 --stop-when request_latency:20 --benchmark-duration 60"
        " --warmup-request-count 8"
    )
    assert (run.log.end, run.log.stopped_by) == ("complete", "steady")
    told = re.fullmatch(r"request_latency is ([\d.,]+) ms within ([\d.]+) %, over .+", run.log.stopped_why)
    assert float(told[2]) <= 20
    assert float(told[1].replace(",", "")) == pytest.approx(run.number("request_latency"), rel=0.5)
    assert set(run.counts) == {"ok-length"}, "what was under way has ended by itself"
    assert run.report.outcomes.planned >= 100
    assert run.measured.stop_ns - run.measured.start_ns < 50e9
    assert (run.report.run.end, run.report.run.stopped_by) == ("complete", "steady")
    assert run.log.stopped_why in run.out
    assert run.report.outcomes.planned == len(run.requests) == run.report.load.sent


@pytest.mark.slow
def test_several_means_have_to_be_known(good, ten_ms):
    run = good(
        f"--url {ten_ms.url} {SHORT} --request-rate 60 --benchmark-duration 60"
        " --stop-when 'request_latency:20 request_throughput:20'"
    )
    assert run.log.stopped_by == "steady"
    assert re.fullmatch(
        r"request_latency is .+ % and request_throughput is .+ %, over .+", run.log.stopped_why
    )
    planned = run.report.outcomes.planned
    assert run.counts == {"ok-length": planned}
    assert max(run.due_ns) < run.measured.stop_ns - run.measured.start_ns < 50e9


def test_a_mean_that_never_settles_stops_nothing(good, ten_ms):
    run = good(
        f"--url {ten_ms.url} {SHORT} --concurrency 2 --stop-when request_latency:0.0001 --benchmark-duration 0.4"
    )
    assert (run.log.end, run.log.stopped_by) == ("complete", None)
    assert run.measured.stop_ns == run.measured.start_ns + 400_000_000


# ---- sessions -------------------------------------------------------------------------------------------


def test_conversations_that_have_begun_go_on_when_their_number_is_reached(good, ten_ms):
    run = good(
        f"--url {ten_ms.url} {SHORT} --concurrency 3 --num-sessions 5 --conversation-turn-mean 2"
        " --conversation-turn-stddev 1 --seed 2"
    )
    assert run.requests["conversation"].n_unique() == 5
    assert run.counts == {"ok-length": len(Recorded(run, "measured").plan)}
    finals = [row.conversation for row in Recorded(run, "measured").plan if row.final]
    assert finals == list(range(5))


# ---- requests before their first token ------------------------------------------------------------------


@pytest.fixture(scope="module")
def prefills(good, simulate):
    """A prompt of 100 tokens takes 30 ms before the first token of ten."""
    server = simulate("--prefill-us-per-token 300 --step-ms 10")
    return good(
        f"--url {server.url} --streaming --isl 100 --osl 10 --extra-inputs ignore_eos:true --concurrency 8"
        " --prefill-concurrency 2 --request-count 40 --workers 2"
    )


def test_no_more_requests_than_asked_wait_for_their_first_token(prefills):
    assert prefills.counts == {"ok-length": 40}
    assert peak(prefills.requests, "sent_ns", "first_ns") == 2


def test_whoever_has_its_first_token_makes_room(prefills):
    assert 2 < peak(prefills.requests) <= 8
    assert prefills.report.load.arrivals[0].prefill == 2
    assert prefills.report.load.arrivals[0].words == "concurrency 8, at most 2 before their first token"


# ---- slots over time ------------------------------------------------------------------------------------


def level_at(steps, moment_s):
    return [slots for at_s, slots in steps if at_s <= moment_s][-1]


def area(steps, until_s):
    """Slot-seconds of a step function."""
    ends = [*steps[1:], (until_s, 0)]
    return sum(
        slots * (min(end, until_s) - at_s) for (at_s, slots), (end, _) in zip(steps, ends, strict=True)
    )


def ramped(good, server, words, lasts_s=1.5):
    """A run with a ramp of a second, and the steps its report tells of."""
    run = good(
        f"--url {server.url} {LONGER} --concurrency-ramp-duration 1 --benchmark-duration {lasts_s} {words}"
    )
    steps = run.report.load.arrivals[0].slot_steps
    assert set(run.counts) == {"ok-length"}
    return run, steps


def in_flight(run):
    """(moment, level) from the start of the measurement, s."""
    return [((at - run.measured.start_ns) / 1e9, n) for at, n in levels(run.requests).items()]


def test_slots_come_one_after_the_other_up_to_the_cap(good, ten_ms):
    run, steps = ramped(good, ten_ms, "--concurrency 6 --workers 2")
    assert [slots for _, slots in steps] == [1, 2, 3, 4, 5, 6]
    assert [at_s for at_s, _ in steps] == pytest.approx([0, 0.1, 0.3, 0.5, 0.7, 0.9])
    assert area(steps, 1.0) == pytest.approx((1 + 6) / 2 * 1.0)
    found = in_flight(run)
    assert all(n <= level_at(steps, at_s) for at_s, n in found if at_s < 1.5)
    assert max(n for _, n in found) == 6
    used = sum(n * (min(end, 1.5) - at_s) for (at_s, n), (end, _) in pairwise(found) if at_s < 1.5)
    assert area(steps, 1.5) * 0.6 < used <= area(steps, 1.5)


@pytest.mark.slow
def test_slots_go_one_after_the_other_as_answers_end(good, ten_ms):
    run, steps = ramped(good, ten_ms, "--concurrency 2 --concurrency-ramp-start 6 --workers 1")
    assert [slots for _, slots in steps] == [6, 5, 4, 3, 2]
    sent_s = Recorded(run, "measured").sent_s
    found = dict(in_flight(run))
    assert max(found.values()) == 6
    # A slot goes when its answer ends. So may one of another worker that has fewer already: hence only one worker.
    assert all(found[at_s] <= level_at(steps, at_s) for at_s in sent_s)
    assert found[sent_s[-1]] == 2


def test_an_exponential_ramp_of_slots_takes_the_steps_of_its_course(good, ten_ms):
    _, steps = ramped(good, ten_ms, "--concurrency 8 --concurrency-ramp-strategy exponential", 0.2)
    halves = [1.5, 2.5, 3.5, 4.5, 5.5, 6.5, 7.5]
    assert [slots for _, slots in steps] == [1, 2, 3, 4, 5, 6, 7, 8]
    assert [8**at_s for at_s, _ in steps[1:]] == pytest.approx(halves, rel=1e-6)
