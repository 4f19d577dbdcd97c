"""Worker processes, led through phases, against a scripted server."""

from __future__ import annotations

import os
import signal
import time
from collections import Counter

import pytest

from loadstone.board import Board, Field
from loadstone.interrupt import Interrupt
from loadstone.load import fleet as fleet_module
from loadstone.load.conduct import Conduct
from loadstone.load.fleet import Fleet, share
from loadstone.plan.schedule import Phase
from loadstone.plan.store import ROWS
from loadstone.recording import WireEnd

S, MS = 1_000_000_000, 1_000_000
COMPLETE, CUT = WireEnd.COMPLETE, WireEnd.CUT
pytestmark = pytest.mark.timeout(30)


def answering(peer):
    peer.serve()


def slow(peer):
    while True:
        peer.request()
        time.sleep(0.02)
        peer.send(peer.ANSWER)


def stuck(peer):
    peer.request()
    peer.send(peer.HEAD + peer.TOKEN)
    peer.hold()


def phase(**changes):
    return Phase(
        **{
            "name": "measured",
            "pattern": "closed",
            "rate": None,
            "smoothness": None,
            "slots": 1,
            "requests": None,
            "duration_ns": None,
            "grace_ns": None,
            **changes,
        }
    )


class Led:
    """A fleet led through phases, and what came of it."""

    def __init__(self, home, workers, job, recorded):
        self.board = Board(home / "board", workers, create=True)
        self.fleet = Fleet(workers, home / "plan" / ROWS, home / "log")
        self.fleet.brief(job)
        self.interrupt = Interrupt()
        self._home = home
        self._recorded = recorded
        self.ticks = Counter()

    def lead(self, *phases, tick=None):
        def ticked(name, elapsed_s):
            self.ticks[name] += 1
            assert elapsed_s >= 0
            if tick:
                tick()

        conduct = Conduct(self.fleet, self.board, self._home / "plan", self.interrupt)
        self.conducted = conduct.lead(phases, ticked)
        self.fields = self.board.live().fields
        self.drawn = [self.board.block(worker)[Field.DRAWN] for worker in range(self.fleet.workers)]
        self.fleet.quit()
        self.board.close()
        self.flights, self.by_worker = self._recorded(self._home / "recording")
        return self.conducted

    @property
    def sent(self):
        return self.board.live().fields[Field.SENT]

    @property
    def ends(self):
        return Counter(flown.end for flown in self.flights)

    def pid(self, worker):
        return self.fleet._children[worker].pid


@pytest.fixture
def led(new_home, serve, job_for, write_plan, read_recording):
    """Starts a fleet: `led(script, due=[...], workers=2)`. A worker that was killed may leave flights without an end."""

    def start(*scripts, due, workers=2, **changes):
        home = new_home()
        server = serve(*scripts)
        write_plan(home / "plan", due)

        def recorded(folder):
            flights = read_recording(folder)[0]
            ended = [flown for flown in flights.values() if flown.ends == 1]
            return sorted(ended, key=lambda flown: flown.facts.request), Counter(key[0] for key in flights)

        job = job_for(home, server.address, blocks=workers, **changes)
        start.server = server
        return Led(home, workers, job, recorded)

    return start


@pytest.mark.parametrize(
    ("slots", "shares"), [(7, [3, 2, 2]), (3, [1, 1, 1]), (1, [1, 0, 0]), (None, [None] * 3)]
)
def test_slots_are_shared_out_evenly(slots, shares):
    assert [share(slots, worker, 3) for worker in range(3)] == shares


def test_two_workers_send_every_row_exactly_once(led):
    run = led(answering, due=[-1] * 300)
    conducted = run.lead(phase(slots=6, requests=300))
    assert [flown.facts.request for flown in run.flights] == list(range(300))
    assert run.ends == {COMPLETE: 300}
    assert set(run.by_worker) == {"w00", "w01"}
    (log,) = conducted.phases
    assert (log.first_row, log.planned) == (0, 300)
    assert log.start_ns <= min(flown.due_ns for flown in run.flights)
    assert max(flown.at_ns for flown in run.flights) <= log.end_ns
    assert sum(worker.flights for worker in conducted.workers) == 300
    assert [worker.fault for worker in conducted.workers] == [None, None]
    assert (conducted.interrupted, conducted.starved) == (False, 0)
    assert (run.fields[Field.SENT], run.fields[Field.ENDED]) == (300, 300)


def test_an_open_loop_is_dealt_out(led):
    due = [i * MS for i in range(100)]
    run = led(answering, due=due)
    (log,) = run.lead(phase(pattern="constant", rate=1_000.0, slots=None, requests=100)).phases
    assert [flown.due_ns - log.start_ns for flown in run.flights] == due
    assert run.by_worker == {"w00": 50, "w01": 50}


def test_warm_up_and_measured_phase_have_their_own_rows(led):
    run = led(answering, due=[-1] * 30)
    conducted = run.lead(phase(name="warmup", slots=4, requests=10), phase(slots=4, requests=20))
    assert [(log.name, log.first_row, log.planned) for log in conducted.phases] == [
        ("warmup", 0, 10),
        ("measured", 10, 20),
    ]
    assert [flown.facts.request for flown in run.flights] == list(range(30))
    assert sum(worker.flights for worker in conducted.workers) == 20
    warm_end = max(flown.at_ns for flown in run.flights[:10])
    assert warm_end < min(flown.sends[0] for flown in run.flights[10:])
    assert set(run.ticks) == {"warmup", "measured"}


def test_more_workers_than_slots(led):
    run = led(answering, due=[-1] * 10, workers=3)
    run.lead(phase(slots=1, requests=10))
    assert run.ends == {COMPLETE: 10}
    assert set(run.by_worker) == {"w00"}


def test_a_duration_ends_a_phase_and_its_grace_cuts(led):
    run = led(stuck, due=[-1] * 50)
    (log,) = run.lead(phase(slots=4, duration_ns=100 * MS, grace_ns=100 * MS)).phases
    assert run.ends == {CUT: 4}
    assert log.planned == 4
    assert log.stop_ns == log.start_ns + 100 * MS
    assert all(flown.at_ns >= log.stop_ns + 100 * MS for flown in run.flights)


def test_a_duration_counts_the_rows_that_were_due_in_it(led):
    run = led(answering, due=[i * 10 * MS for i in range(100)])
    (log,) = run.lead(
        phase(pattern="constant", rate=100.0, slots=None, duration_ns=95 * MS, grace_ns=S)
    ).phases
    assert log.planned == len(run.flights) == 10


def test_a_worker_that_is_killed_is_missed_and_the_other_goes_on(led):
    run = led(slow, due=[-1] * 60)

    def kill():
        if run.sent and not run.fleet.faults and run.ticks["measured"] < 20:
            os.kill(run.pid(1), signal.SIGKILL)

    conducted = run.lead(phase(slots=2, requests=60), tick=kill)
    assert set(run.fleet.faults) == {1}
    first, second = conducted.workers
    assert first.fault is None
    assert "died" in second.fault
    lost = 60 - first.flights - run.drawn[1]
    assert lost in (0, 1)  # one, if it was killed between taking a row and counting it
    assert 0 < run.drawn[1] < 30 < first.flights
    assert set(run.ends) == {COMPLETE}


def test_a_fleet_without_a_living_worker_ends_its_phase(led):
    run = led(answering, due=[-1] * 10)
    for worker in (0, 1):
        os.kill(run.pid(worker), signal.SIGKILL)
    conducted = run.lead(phase(slots=2, requests=10))
    assert set(run.fleet.faults) == {0, 1}
    assert all("died" in worker.fault for worker in conducted.workers)


def test_workers_that_cannot_take_their_job_are_missed(led):
    run = led(answering, due=[-1] * 10, endpoint="no-such-endpoint")
    assert set(run.fleet.faults) == {0, 1}
    run.lead(phase(slots=2, requests=10))
    assert run.flights == []


def test_a_worker_that_hangs_is_killed_some_time_after_the_cut(led, monkeypatch):
    monkeypatch.setattr(fleet_module, "OVERDUE_S", 0.2)
    run = led(stuck, due=[-1] * 10)

    def hang():
        if run.sent == 2:
            os.kill(run.pid(0), signal.SIGSTOP)

    conducted = run.lead(phase(slots=2, duration_ns=400 * MS, grace_ns=100 * MS), tick=hang)
    assert set(run.fleet.faults) == {0}
    assert conducted.workers[1].fault is None
    assert run.ends == {CUT: 1}


def test_one_interrupt_stops_sending_and_awaits_answers(led):
    run = led(slow, due=[-1] * 1_000)

    def interrupt():
        if run.sent:
            run.interrupt.asked = 1

    conducted = run.lead(phase(slots=4, requests=1_000), phase(requests=10), tick=interrupt)
    assert conducted.interrupted
    assert len(conducted.phases) == 1
    assert 0 < len(run.flights) < 1_000
    assert run.ends == {COMPLETE: len(run.flights)}
    assert conducted.phases[0].planned == len(run.flights)


def test_an_interrupt_of_an_open_loop_does_not_wait_for_the_grace(led):
    run = led(answering, due=[0, 1, 600 * S, 600 * S])

    def interrupt():
        if run.sent == 2:
            run.interrupt.asked = 1

    (log,) = run.lead(phase(pattern="constant", rate=1.0, slots=None, requests=4), tick=interrupt).phases
    assert run.ends == {COMPLETE: 2}
    assert log.planned == 2
    assert log.end_ns - log.stop_ns < 10 * S


def test_a_second_interrupt_cuts(led):
    run = led(stuck, due=[-1] * 10)

    def interrupt():
        if run.sent == 2:
            run.interrupt.asked += 1

    (log,) = run.lead(phase(slots=2, requests=10), tick=interrupt).phases
    assert run.ends == {CUT: 2}
    assert log.end_ns - log.stop_ns < 10 * S


def test_killing_a_fleet_leaves_no_process(led):
    run = led(stuck, due=[-1] * 4)
    pids = [run.pid(worker) for worker in (0, 1)]
    run.fleet.kill()
    run.board.close()
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def test_the_portable_form_works_in_a_process_too(led):
    run = led(answering, due=[-1] * 40, portable=True)
    assert run.fleet.kernel_stamps is False
    run.lead(phase(slots=4, requests=40))
    assert run.ends == {COMPLETE: 40}
    assert not any(read.stamped for flown in run.flights for read in flown.reads)
