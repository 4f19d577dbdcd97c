"""What a run keeps of its machine: looks through all its phases, its own processes, decoders at the end."""

from __future__ import annotations

from itertools import pairwise

import pytest


@pytest.fixture(scope="module")
def run(profile, engine):
    return profile(
        f"--url {engine.url} --streaming --isl 16 --osl 8 --concurrency 4 --benchmark-duration 2 --warmup-request-count 8"
    )


def test_every_phase_was_looked_at_from_its_begin_to_its_end(run):
    for phase in run.log.phases:
        spans = [span for span in run.log.machine.spans if span.phase == phase.name]
        assert spans[0].start_ns <= phase.start_ns
        assert spans[-1].end_ns >= phase.end_ns
        assert all(one.end_ns == other.start_ns for one, other in pairwise(spans))
        assert all(0 <= span.busy_ns <= span.cpu_ns for span in spans)


def test_the_busy_share_is_that_of_the_measured_spans(run):
    spans = [span for span in run.log.machine.spans if span.phase == "measured"]
    busy = sum(span.busy_ns for span in spans) / sum(span.cpu_ns for span in spans)
    assert run.log.host_busy_share == pytest.approx(busy)


def test_its_own_processes_are_known_by_name(run):
    used = run.log.machine.processes_ns
    assert {"main", "worker 0", "decoder 0"} <= used.keys()
    assert sum(used.values()) >= sum(span.ours_ns for span in run.log.machine.spans) > 0


def test_workers_and_decoders_tell_of_themselves(run):
    (worker,) = run.log.workers
    assert worker.collections == 0
    assert worker.write_ns > 0
    assert worker.stall_ns >= 0
    assert 0 <= run.log.decoding.behind <= len(run.table)
    assert run.log.decoding.took_ns > 0


def test_the_checks_of_the_machine_are_made(run):
    for name in ("machine_steal", "other_load", "kernel_drops", "memory_pressure", "loop_stalls"):
        assert not run.check(name).finding.startswith("not known: nobody looked")
