"""Runs in which something breaks: a process, the server, the disk, the terminal. Each ends by itself with a report."""

from __future__ import annotations

import os
import pty
import re
import resource
import signal
import subprocess
import threading
import time

import pytest

from loadstone.errors import Exit

S = 1_000_000_000
PATIENCE_S = 60.0
LOAD = "--streaming --isl 16 --osl 40 --extra-inputs ignore_eos:true --concurrency 4 --request-count"


def hurt(process, module, number):
    """Sends a signal to the first child that runs a module; when that was."""
    process.children(module)[0].send_signal(number)
    return time.monotonic_ns()


HOW = pytest.mark.parametrize(
    ("number", "fault"),
    [(signal.SIGKILL, "killed by signal 9"), (signal.SIGSTOP, "stopped for 4 s, then killed")],
    ids=["killed", "stopped"],
)

# ---- processes ------------------------------------------------------------------------------------------


@HOW
def test_a_dead_worker_makes_the_run_invalid_and_loses_no_count(running, tmp_path, run_of, number, fault):
    process = running(f"{LOAD} 200 --workers 2")
    hurt_ns = hurt(process, "loadstone.load.worker", number)
    code, out, err = process.ended()
    run = run_of(tmp_path / "run")
    assert code == Exit.INVALID == 5, err
    [death] = run.log.deaths
    assert death.fault == fault
    assert death.noticed_ns - hurt_ns < 5 * S
    said = f"{death.process}, which sends the load, died ({fault}); what it had under way is lost."
    assert out.replace("\n  ", " ").startswith(f"INVALID: {said}")
    assert run.check("processes").verdict == "INVALID"
    assert run.report.outcomes.planned == 200
    run.adds_up()
    assert set(run.counts) == {"ok-length", "client-fault"}
    assert run.counts["ok-length"] > 150


@pytest.mark.parametrize("phase", ["", "--warmup-request-count 1000"], ids=["measured", "warm-up"])
def test_the_death_of_the_only_worker_ends_the_run(running, tmp_path, run_of, phase):
    process = running(f"{LOAD} 4000 --workers 1 {phase}")
    hurt(process, "loadstone.load.worker", signal.SIGKILL)
    code, _, _ = process.ended()
    run = run_of(tmp_path / "run")
    assert code == (Exit.FAILED if phase else Exit.INVALID), "nothing was measured if it died in the warm-up"
    assert [death.process for death in run.log.deaths] == ["worker 0"]
    assert run.report.outcomes.planned == sum(run.counts.values()) < 4000
    assert ("nothing was measured" in " ".join(run.report.run.notices)) == bool(phase)


def test_what_was_dealt_to_a_dead_worker_is_the_fault_of_the_client(running, tmp_path, run_of):
    process = running(
        "--streaming --isl 16 --osl 40 --extra-inputs ignore_eos:true --request-rate 75 --arrival-pattern constant"
        " --request-count 120 --workers 2"
    )
    hurt(process, "loadstone.load.worker", signal.SIGKILL)
    code, _, _ = process.ended()
    run = run_of(tmp_path / "run")
    assert code == Exit.INVALID
    assert run.report.outcomes.planned == 120
    run.adds_up()
    assert set(run.counts) == {"ok-length", "client-fault"}
    lost = run.requests.filter(run.requests["outcome"] == "client-fault")["request"]
    assert len(set((lost % 2).to_list())) == 1, "the other worker has sent all of its own"
    assert run.measured.dealt


@HOW
def test_a_dead_decoder_costs_nothing_but_time_and_the_certificate(running, tmp_path, run_of, number, fault):
    process = running(f"{LOAD} 200 --warmup-request-count 5")
    hurt_ns = hurt(process, "loadstone.read.follow", number)
    code, out, err = process.ended()
    run = run_of(tmp_path / "run")
    assert code == Exit.INVALID, err
    [death] = run.log.deaths
    assert (death.process, death.fault) == ("decoder 0", fault)
    assert death.noticed_ns - hurt_ns < 5 * S
    said = f"decoder 0, which reads the recorded answers, died ({fault}); what it had not read was decoded afterwards."
    assert out.replace("\n  ", " ").startswith(f"INVALID: {said}")
    assert run.counts == {"ok-length": 200}
    assert run.report.outcomes.warmup == {"ok-length": 5}
    assert run.requests["output_tokens"].to_list() == [40] * 200
    assert run.against == ["processes"]


@HOW
def test_a_dead_composer_stops_the_load(running, tmp_path, run_of, number, fault):
    process = running(
        "--streaming --isl 3000 --osl 40 --extra-inputs ignore_eos:true --concurrency 4 --request-count 100000"
    )
    hurt(process, "loadstone.compose", number)
    code, out, err = process.ended()
    run = run_of(tmp_path / "run")
    assert (code, run.log.stopped_by) == (Exit.FAILED, "trouble")
    assert run.log.stopped_why == f"the composer died ({fault}); see loadstone.log"
    assert out.startswith("STOPPED: the composer died")
    assert f"stopping (the composer died ({fault}); see loadstone.log)" in err
    run.adds_up()


@HOW
def test_a_dead_built_in_engine_stops_the_load(running, tmp_path, run_of, number, fault):
    process = running(f"{LOAD} 4000 --benchmark-grace-period 1 --duration 600", url="sim:step_ms=1")
    hurt(process, "loadstone.sim.server", number)
    code, _, _ = process.ended()
    run = run_of(tmp_path / "run")
    assert (code, run.log.end, run.log.stopped_by) == (Exit.FAILED, "aborted", "trouble")
    assert run.log.stopped_why == f"the built-in engine died ({fault}); see loadstone.log"
    run.adds_up()
    assert run.report.outcomes.planned < 4000


# ---- the server -----------------------------------------------------------------------------------------


def vanishing(scripted, last_row):
    """A server that is gone from one row on; those before it are answered first, however late they are read."""
    left, answered = set(range(last_row)), threading.Event()

    def script(call, wire):
        if call.row < last_row:
            wire.answer(call)
            left.discard(call.row)
            if not left:
                answered.set()
        else:
            answered.wait(PATIENCE_S)
            server.vanish()
            wire.reset()

    server = scripted(script)
    return server


WHY = re.compile(r"\d+ of the last \d+ requests failed, since about \d+\.\d s")


@pytest.mark.parametrize("workers", [1, 2])
def test_a_server_that_dies_at_half_ends_the_run(profile, scripted, workers):
    server = vanishing(scripted, 150)
    run = profile(
        f"--url {server.url} --model m --streaming --isl 16 --concurrency 4 --request-count 3000 --workers {workers}"
    )
    assert run.code == Exit.FAILED
    assert (run.log.end, run.log.stopped_by) == ("aborted", "failures")
    assert WHY.fullmatch(run.log.stopped_why)
    assert "STOPPED: " in run.out
    assert f"stopping ({run.log.stopped_why}): answers under way have 2 s to end" in run.err
    assert run.report.outcomes.planned == sum(run.counts.values()) < 3_000
    assert run.counts["ok"] == 150


def test_a_server_that_dies_in_the_warm_up_ends_the_run(profile, scripted):
    server = vanishing(scripted, 10)
    run = profile(
        f"--url {server.url} --model m --streaming --isl 16 --request-count 5 --warmup-request-count 3000"
    )
    assert (run.code, run.log.stopped_by) == (Exit.FAILED, "failures")
    assert [phase.name for phase in run.log.phases] == ["warmup"]
    assert "nothing was measured" in " ".join(run.report.run.notices)
    assert run.report.outcomes.planned == 0


def refusing(scripted, wrong=lambda row: True):
    """A server that has a failure for some of the rows."""

    def script(call, wire):
        if wrong(call.row):
            wire.refuse("500 Internal Server Error", "broken")
        else:
            wire.answer(call)

    return scripted(script)


def test_a_run_in_which_everything_fails_has_its_report_too(profile, scripted):
    run = profile(f"--url {refusing(scripted).url} --model m --streaming --isl 16 --request-count 10")
    assert run.code == Exit.FAILED
    assert (run.log.end, run.log.stopped_by) == ("complete", None)
    assert run.counts == {"http-server-error": 10}
    assert (run.path / "requests.jsonl").exists()


def test_an_open_loop_is_given_up_too(profile, scripted):
    run = profile(
        f"--url {refusing(scripted).url} --model m --streaming --isl 16 --request-rate 100 --request-count 3000"
    )
    assert (run.code, run.log.stopped_by) == (Exit.FAILED, "failures")
    assert run.counts.keys() == {"http-server-error"}
    assert run.report.outcomes.planned == sum(run.counts.values()) < 3_000


@pytest.mark.parametrize(
    ("asked", "given_up"),
    [("", False), ("--failed-request-threshold 1", False), ("--max-error-rate 0.2", True)],
)
def test_a_third_of_failures_is_a_finding_unless_less_was_asked_for(profile, scripted, asked, given_up):
    server = refusing(scripted, lambda row: row % 3 == 0)
    run = profile(
        f"--url {server.url} --model m --streaming --isl 16 --request-rate 150 --request-count 300"
        f" --arrival-pattern constant {asked}"
    )
    assert (run.log.stopped_by == "failures") == given_up
    assert (run.code == Exit.FAILED) == given_up
    assert (run.report.outcomes.planned == 300) != given_up


# ---- disk and terminal ----------------------------------------------------------------------------------


def files_of(most_bytes):
    """A process whose files, and those of its children, may not grow beyond that: a disk that fills up."""

    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (most_bytes, most_bytes))

    return limit


def test_a_disk_that_fills_up_stops_the_load_and_what_was_recorded_is_reported(
    started, engine, tmp_path, run_of
):
    process = started(
        f"profile --url {engine.url} --artifact-dir run {LOAD} 2000 --no-inputs-json",
        preexec_fn=files_of(1_500_000),
    )
    code, _, err = process.ended()
    run = run_of(tmp_path / "run")
    assert code == Exit.FAILED, err
    assert (run.log.end, run.log.stopped_by) == ("aborted", "trouble")
    assert "the recording cannot be written: File too large" in run.log.stopped_why
    assert f"cancelling what is under way ({run.log.stopped_why})" in err
    assert "Traceback" not in err
    run.adds_up()
    assert run.counts["ok-length"] > 50


def test_a_report_that_does_not_fit_can_be_made_later(good, engine, started, loadstone, tmp_path):
    run = good(f"--url {engine.url} --streaming --isl 16 --osl 4 --request-count 5")
    before = (run.path / "report.json").read_bytes()
    process = started(f"report {run.path}", preexec_fn=files_of(1_000))
    code, out, err = process.ended()
    assert (code, out) == (Exit.FAILED, "")
    assert err == (
        "loadstone: error: no space left for the report of this run; nothing recorded is lost."
        f" `loadstone report {run.path}` makes the report when there is space.\n"
    )
    assert (run.path / "report.json").read_bytes() == before
    assert loadstone("report", str(run.path)).code == run.code


QUICK = "--streaming --isl 16 --osl 4 --request-count 5"


def test_a_reader_that_has_gone_changes_nothing(started, engine, tmp_path):
    reader, writer = os.pipe()
    os.close(reader)
    process = started(f"profile --url {engine.url} --artifact-dir run {QUICK}", stdout=writer)
    os.close(writer)
    _, err = process.communicate(timeout=60)
    assert process.returncode in (Exit.DONE, Exit.INVALID)
    assert "Traceback" not in err
    assert (tmp_path / "run/report.json").exists()


def test_a_summary_that_cannot_be_printed_is_in_the_folder(started, engine, tmp_path):
    with open("/dev/full", "w") as full:
        process = started(f"profile --url {engine.url} --artifact-dir run {QUICK}", stdout=full)
        _, err = process.communicate(timeout=60)
    assert process.returncode == Exit.FAILED
    said = "the summary could not be printed (No space left on device); it is in run/summary.txt."
    assert err.splitlines()[-1] == f"loadstone: error: {said}"
    assert (tmp_path / "run/summary.txt").read_text().count("\n") > 5


def test_a_terminal_that_goes_away_changes_nothing(engine, started, tmp_path, run_of):
    ours, theirs = pty.openpty()
    process = started(
        f"profile --url {engine.url} --artifact-dir run {LOAD} 100", stdout=theirs, stderr=theirs
    )
    os.close(theirs)
    os.read(ours, 1)
    os.close(ours)
    assert process.wait(60) in (Exit.DONE, Exit.INVALID)
    run = run_of(tmp_path / "run")
    assert run.counts == {"ok-length": 100}


def test_few_descriptors_are_told_before_the_start_and_are_no_failure(started, engine, tmp_path, run_of):
    def limit():
        resource.setrlimit(resource.RLIMIT_NOFILE, (80, 90))

    process = started(
        f"profile --url {engine.url} --artifact-dir run --streaming --isl 16 --osl 4 --concurrency 40"
        " --request-count 80 --workers 1",
        preexec_fn=limit,
    )
    _, _, err = process.ended()
    sentence = "A process may have 90 open files (ulimit -n) and 40 connections a worker need 104"
    run = run_of(tmp_path / "run")
    assert sentence in err
    assert any(notice.startswith(sentence) for notice in run.report.run.notices)
    assert sum(run.counts.values()) == run.counts["ok"] + run.counts.get("ok-length", 0) == 80


def test_nothing_hangs_when_a_process_is_stopped_at_the_end(running, tmp_path, run_of, wait_until):
    process = running(f"{LOAD} 100")
    [decoder] = process.children("loadstone.read.follow")
    [worker] = process.children("loadstone.load.worker")
    decoder.suspend()
    worker.suspend()
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(1)
    code, _, _ = process.ended()
    assert code == Exit.INVALID
    assert {death.process for death in run_of(tmp_path / "run").log.deaths} == {"worker 0", "decoder 0"}
