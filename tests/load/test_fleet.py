"""Worker processes, led through phases, against a scripted server."""

from __future__ import annotations

import os
import signal
import time
from collections import Counter

import pytest

from loadstone.board import Board, Field
from loadstone.child import Child
from loadstone.interrupt import Interrupt
from loadstone.load import fleet as fleet_module
from loadstone.load.conduct import Conduct
from loadstone.load.fleet import Fleet
from loadstone.plan.schedule import Phase
from loadstone.plan.store import Draft
from loadstone.recording import WireEnd

S, MS = 1_000_000_000, 1_000_000
COMPLETE, CUT, CANCELLED = WireEnd.COMPLETE, WireEnd.CUT, WireEnd.CANCELLED
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
            "kind": "warmup" if changes.get("name") == "warmup" else "measured",
            "pattern": "closed",
            "slots": 1,
            "slot_steps": ((0, slots),) if (slots := changes.get("slots", 1)) else (),
            **changes,
        }
    )


class Led:
    """A fleet led through phases, and what came of it."""

    def __init__(self, home, workers, first_rows, job, recorded):
        self.board = Board(home / "board", workers, create=True)
        self.fleet = Fleet(workers, home / "plan", first_rows, home / "log", self.board)
        self.fleet.brief(job)
        self.interrupt = Interrupt()
        self._home = home
        self._recorded = recorded
        self.ticks = Counter()
        self.waiting = []

    def lead(self, *phases, tick=None, **hooks):
        def ticked(phase, elapsed_s, waiting):
            self.ticks[phase.name] += 1
            self.waiting.append(waiting)
            assert elapsed_s >= 0
            if tick:
                tick()

        conduct = Conduct(self.fleet, self.board, self._home / "plan", self.interrupt, **hooks)
        self.conducted = conduct.lead(phases, 1, ticked)
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

    def start(*scripts, due, workers=2, first_rows=(0,), **changes):
        home = new_home()
        server = serve(*scripts)
        write_plan(home / "plan", due, first_rows=first_rows)

        def recorded(folder):
            flights = read_recording(folder)[0]
            ended = [flown for flown in flights.values() if flown.ends == 1]
            return sorted(ended, key=lambda flown: flown.facts.request), Counter(key[0] for key in flights)

        job = job_for(home, server.address, blocks=workers, **changes)
        start.server = server
        fleets.append(Led(home, workers, first_rows, job, recorded))
        return fleets[-1]

    fleets = []
    yield start
    for one in fleets:
        one.fleet.kill()


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
    assert (conducted.stop, conducted.starved) == (None, 0)
    assert (run.fields[Field.SENT], run.fields[Field.ENDED]) == (300, 300)


def test_an_open_loop_is_dealt_out(led):
    due = [i * MS for i in range(100)]
    run = led(answering, due=due)
    (log,) = run.lead(phase(pattern="fixed", rate=1_000.0, slots=None, requests=100)).phases
    assert [flown.due_ns - log.start_ns for flown in run.flights] == due
    assert run.by_worker == {"w00": 50, "w01": 50}


def test_warm_up_and_measured_phase_have_their_own_rows(led):
    run = led(answering, due=[-1] * 30, first_rows=(0, 10))
    conducted = run.lead(
        phase(name="warmup", slots=4, requests=10), phase(slots=4, requests=20, first_row=10)
    )
    assert [(log.name, log.first_row, log.planned) for log in conducted.phases] == [
        ("warmup", 0, 10),
        ("measured", 10, 20),
    ]
    assert [flown.facts.request for flown in run.flights] == list(range(30))
    assert sum(worker.flights for worker in conducted.workers) == 20
    warm_end = max(flown.at_ns for flown in run.flights[:10])
    assert warm_end < min(flown.sends[0] for flown in run.flights[10:])
    assert set(run.ticks) == {"warmup", "measured"}


def test_phases_without_a_pause_overlap_and_are_noted_each(led):
    run = led(slow, due=[-1] * 60, first_rows=(0, 20))
    told = []
    phases = [
        phase(name="warmup", slots=4, requests=20),
        phase(slots=4, requests=40, first_row=20, seamless=True),
    ]
    conducted = run.lead(
        *phases,
        begins=lambda one: told.append(f"{one.name} begins"),
        ended=lambda one: told.append(f"{one.name} ended"),
    )
    warm, measured = conducted.phases
    assert [(log.name, log.kind, log.seamless, log.planned) for log in conducted.phases] == [
        ("warmup", "warmup", False, 20),
        ("measured", "measured", True, 40),
    ]
    assert run.ends == {COMPLETE: 60}
    assert warm.start_ns < measured.start_ns < warm.end_ns < measured.end_ns
    assert sum(worker.flights for worker in conducted.workers) == 40
    assert told == ["warmup begins", "measured begins", "warmup ended", "measured ended"]
    assert "measured" in run.ticks


def test_an_open_loop_hands_over_at_a_moment_that_all_workers_keep(led):
    due = [i * 10 * MS for i in range(10)]
    run = led(answering, due=[*due, *due], first_rows=(0, 10))
    conducted = run.lead(
        phase(name="warmup", pattern="fixed", slots=None, duration_ns=100 * MS),
        phase(pattern="fixed", slots=None, requests=10, first_row=10, seamless=True),
    )
    warm, measured = conducted.phases
    assert measured.start_ns == warm.stop_ns == warm.start_ns + 100 * MS
    assert [flown.due_ns - measured.start_ns for flown in run.flights[10:]] == due


def test_due_times_after_a_closed_loop_count_from_one_moment_in_all_workers(led):
    due = [i * 10 * MS for i in range(20)]
    run = led(slow, due=[*[-1] * 11, *due], first_rows=(0, 11))
    conducted = run.lead(
        phase(name="warmup", slots=2, requests=11),
        phase(pattern="fixed", slots=None, requests=20, first_row=11, seamless=True),
    )
    warm, measured = conducted.phases
    assert [flown.due_ns - measured.start_ns for flown in run.flights[11:]] == due
    assert {len(run.by_worker)} == {2}
    assert measured.start_ns > warm.start_ns


def test_a_closed_loop_hands_over_to_due_times_at_the_end_of_its_duration(led):
    run = led(slow, due=[*[-1] * 100, 0, 0, 5 * MS], first_rows=(0, 100))
    conducted = run.lead(
        phase(name="warmup", slots=2, duration_ns=100 * MS),
        phase(pattern="fixed", slots=None, requests=3, first_row=100, seamless=True),
    )
    warm, measured = conducted.phases
    assert measured.start_ns == warm.start_ns + 100 * MS == warm.stop_ns
    assert [flown.due_ns - measured.start_ns for flown in run.flights[-3:]] == [0, 0, 5 * MS]


def test_a_stop_in_the_first_of_overlapping_phases_leaves_the_others_out(led):
    run = led(stuck, due=[-1] * 20, first_rows=(0, 10))

    def interrupt():
        if run.sent == 2:
            run.interrupt.asked = 2

    conducted = run.lead(
        phase(name="warmup", slots=2, requests=10),
        phase(slots=2, requests=10, first_row=10, seamless=True),
        tick=interrupt,
    )
    assert [log.name for log in conducted.phases] == ["warmup"]
    assert run.ends == {CANCELLED: 2}


def test_a_load_stops_when_its_numbers_are_good_enough_and_what_is_under_way_ends(led):
    run = led(slow, due=[-1] * 1_000)
    conducted = run.lead(
        phase(slots=4, requests=1_000),
        steady=lambda phase, live, elapsed_s: "known well" if run.sent else None,
    )
    assert conducted.stop == ("steady", "known well")
    assert run.ends == {COMPLETE: len(run.flights)}
    assert 0 < len(run.flights) == conducted.phases[0].planned < 1_000


def test_what_waits_behind_a_cap_is_told_while_the_load_lasts(led):
    run = led(slow, due=[0] * 100)
    run.lead(phase(pattern="burst", slots=2, requests=100))
    assert 0 < run.waiting[0] < 100
    assert run.waiting == sorted(run.waiting, reverse=True)


def test_conversations_that_were_begun_count_whole(led):
    rows = [
        Draft(
            -1,
            b"{}",
            -1,
            -1,
            i // 3,
            i % 3,
            0,
            int(i % 3 == 2),
            follows=int(i % 3 > 0),
            opens=int(i % 3 == 0),
        )
        for i in range(300)
    ]
    run = led(slow, due=rows)
    (log,) = run.lead(phase(slots=2, duration_ns=150 * MS, grace_ns=S)).phases
    assert log.planned % 3 == 0
    assert len(run.flights) <= log.planned < len(run.flights) + 3 * 2


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
    (log,) = run.lead(phase(pattern="fixed", rate=100.0, slots=None, duration_ns=95 * MS, grace_ns=S)).phases
    assert log.planned == len(run.flights) == 10


def test_a_worker_that_is_killed_is_missed_and_the_other_goes_on(led):
    run = led(slow, due=[-1] * 60)

    def kill():
        if run.sent and not run.fleet.deaths and run.ticks["measured"] < 20:
            os.kill(run.pid(1), signal.SIGKILL)

    conducted = run.lead(phase(slots=2, requests=60), tick=kill)
    assert set(run.fleet.deaths) == {1}
    assert (run.fleet.deaths[1].process, run.fleet.deaths[1].fault) == ("worker 1", "killed by signal 9")
    first, second = conducted.workers
    assert (first.fault, second.fault) == (None, "killed by signal 9")
    assert conducted.stop is None
    (log,) = conducted.phases
    assert (log.planned, log.drawn, log.dealt) == (60, 60, False)
    assert 0 < run.drawn[1] < 30 < first.flights
    assert set(run.ends) == {COMPLETE}


def test_rows_dealt_to_a_dead_worker_stay_planned(led):
    run = led(answering, due=[i * 20 * MS for i in range(60)])

    def kill():
        if run.sent and not run.fleet.deaths:
            os.kill(run.pid(1), signal.SIGKILL)

    (log,) = run.lead(phase(pattern="fixed", rate=50.0, slots=None, requests=60), tick=kill).phases
    assert set(run.fleet.deaths) == {1}
    assert (log.planned, log.dealt, log.drawn) == (60, True, 0)
    assert run.drawn[0] == 30 > run.drawn[1]


def test_a_fleet_without_a_living_worker_ends_its_phase(led):
    run = led(answering, due=[-1] * 10, first_rows=(0, 5))
    for worker in (0, 1):
        os.kill(run.pid(worker), signal.SIGKILL)
    conducted = run.lead(phase(name="warmup", slots=2, requests=5), phase(slots=2, requests=5, first_row=5))
    assert set(run.fleet.deaths) == {0, 1}
    assert [worker.fault for worker in conducted.workers] == ["killed by signal 9"] * 2
    assert [(log.name, log.planned) for log in conducted.phases] == [("warmup", 0)]


def test_an_open_loop_without_a_living_worker_plans_what_was_due_until_then(led):
    run = led(answering, due=[0, 1, 600 * S, 600 * S])

    def kill():
        if run.sent == 2 and not run.fleet.deaths:
            for worker in (0, 1):
                os.kill(run.pid(worker), signal.SIGKILL)

    (log,) = run.lead(phase(pattern="fixed", rate=1.0, slots=None, requests=4), tick=kill).phases
    assert log.planned == 2
    assert log.start_ns < log.stop_ns <= log.end_ns


def test_workers_that_cannot_take_their_job_are_missed(led):
    run = led(answering, due=[-1] * 10, endpoint="no-such-endpoint")
    assert [death.fault for death in run.fleet.deaths.values()] == ["exit status 1"] * 2
    run.lead(phase(slots=2, requests=10))
    assert run.flights == []


def test_a_worker_that_is_not_ready_in_time_is_missed(led, monkeypatch):
    monkeypatch.setattr(fleet_module, "READY_S", 0.0)
    monkeypatch.setattr(fleet_module, "TICK_S", 0.0)
    run = led(answering, due=[-1] * 10)
    assert set(run.fleet.deaths) == {0, 1}
    assert "not ready within 0 s" in run.fleet.deaths[0].fault
    run.lead(phase(slots=2, requests=10))
    assert run.flights == []


def stop(run, worker):
    """A tick that stops a worker once every one has sent something."""

    def tick():
        if run.sent >= 2 and not run.fleet.deaths:
            os.kill(run.pid(worker), signal.SIGSTOP)

    return tick


def test_a_worker_that_hangs_is_killed_some_time_after_the_cut(led, monkeypatch):
    monkeypatch.setattr(fleet_module, "OVERDUE_S", 0.2)
    run = led(stuck, due=[-1] * 10)
    conducted = run.lead(phase(slots=2, duration_ns=400 * MS, grace_ns=100 * MS), tick=stop(run, 0))
    assert set(run.fleet.deaths) == {0}
    assert "0.2 s after they were cancelled" in conducted.workers[0].fault
    assert conducted.workers[1].fault is None
    assert run.ends == {CUT: 1}


def test_a_worker_that_still_awaits_answers_of_an_earlier_phase_is_not_overdue(led, monkeypatch):
    monkeypatch.setattr(fleet_module, "OVERDUE_S", 0.1)

    def late(peer):
        peer.request()
        time.sleep(1.0)
        peer.send(peer.ANSWER)

    run = led(late, answering, due=[-1] * 20, workers=1, first_rows=(0, 1))
    run.lead(
        phase(name="warmup", slots=2, requests=1),
        phase(slots=2, requests=19, first_row=1, duration_ns=100 * MS, grace_ns=0, seamless=True),
    )
    assert run.fleet.deaths == {}
    assert run.flights[0].end == COMPLETE


def test_a_worker_that_is_stopped_is_killed_and_the_other_goes_on(led, monkeypatch):
    monkeypatch.setattr(fleet_module, "STOPPED_S", 0.4)
    run = led(slow, due=[-1] * 100)
    conducted = run.lead(phase(slots=2, requests=100), tick=stop(run, 1))
    assert set(run.fleet.deaths) == {1}
    assert conducted.workers[1].fault == "stopped for 0.4 s, then killed"
    assert conducted.phases[0].planned == 100
    assert conducted.workers[0].flights > 50  # those that the other had not written yet are lost


def test_a_worker_without_a_beat_is_killed_though_it_is_not_stopped(led, monkeypatch):
    monkeypatch.setattr(fleet_module, "HUNG_S", 0.4)
    run = led(slow, due=[-1] * 100)
    monkeypatch.setattr(Child, "stopped", lambda child: False)
    conducted = run.lead(phase(slots=2, requests=100), tick=stop(run, 1))
    assert conducted.workers[1].fault == "no sign of life for 0.4 s, then killed"
    assert conducted.workers[0].flights > 50  # those that the other had not written yet are lost


def test_trouble_of_a_worker_stops_the_load_at_once(led):
    run = led(stuck, due=[-1] * 10, first_rows=(0, 5))

    def trouble():
        if run.sent == 2:
            run.fleet.trouble = "no space left"

    conducted = run.lead(
        phase(name="warmup", slots=2, requests=5), phase(requests=5, first_row=5), tick=trouble
    )
    assert conducted.stop == ("trouble", "no space left")
    assert [log.name for log in conducted.phases] == ["warmup"]
    assert run.ends == {CANCELLED: 2}


def test_one_interrupt_stops_sending_and_awaits_answers(led):
    run = led(slow, due=[-1] * 1_010, first_rows=(0, 1_000))

    def interrupt():
        if run.sent:
            run.interrupt.asked = 1

    conducted = run.lead(phase(slots=4, requests=1_000), phase(requests=10, first_row=1_000), tick=interrupt)
    assert conducted.stop == ("user", "interrupted")
    assert len(conducted.phases) == 1
    assert 0 < len(run.flights) < 1_000
    assert run.ends == {COMPLETE: len(run.flights)}
    assert conducted.phases[0].planned == len(run.flights)


def test_an_interrupt_of_an_open_loop_does_not_wait_for_the_grace(led):
    run = led(answering, due=[0, 1, 600 * S, 600 * S])

    def interrupt():
        if run.sent == 2:
            run.interrupt.asked = 1

    (log,) = run.lead(phase(pattern="fixed", rate=1.0, slots=None, requests=4), tick=interrupt).phases
    assert run.ends == {COMPLETE: 2}
    assert log.planned == 2
    assert log.end_ns - log.stop_ns < 10 * S


def test_a_second_interrupt_cancels(led):
    run = led(stuck, due=[-1] * 10)

    def interrupt():
        if run.sent == 2:
            run.interrupt.asked += 1

    (log,) = run.lead(phase(slots=2, requests=10), tick=interrupt).phases
    assert run.ends == {CANCELLED: 2}
    assert log.end_ns - log.stop_ns < 10 * S


def test_an_interrupt_in_the_grace_does_not_prolong_it(led):
    run = led(stuck, due=[-1] * 10)

    def interrupt():
        if run.sent == 2 and time.monotonic_ns() > run.first_ns + 200 * MS:
            run.interrupt.asked = 1

    run.first_ns = time.monotonic_ns()
    conducted = run.lead(phase(slots=2, duration_ns=200 * MS, grace_ns=600 * MS), tick=interrupt)
    assert conducted.stop == ("user", "interrupted")
    assert run.ends == {CUT: 2}
    assert conducted.phases[0].end_ns - conducted.phases[0].stop_ns < 10 * S


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
