"""Runs that end before their time: asked to, told to, or killed. What was recorded is reported."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from contextlib import suppress

import psutil
import pytest

from loadstone.errors import Exit

SLOW = "--streaming --isl 16 --osl 40 --extra-inputs ignore_eos:true --concurrency 4 --request-count 4000"


ALL = pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])


def heeding_hangups():
    """The state of a shell's child, which a test run under nohup is not."""
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


@ALL
def test_one_signal_lets_answers_under_way_end(running, tmp_path, run_of, number):
    process = running(SLOW, preexec_fn=heeding_hangups)
    process.send_signal(number)
    code, out, err = process.ended()
    run = run_of(tmp_path / "run")
    assert code == Exit.INTERRUPTED == 130
    assert (run.log.end, run.log.stopped_by) == ("interrupted", "user")
    assert run.counts == {"ok-length": run.report.outcomes.planned}
    assert 4 < run.report.outcomes.planned < 4000
    run.adds_up()
    assert out.startswith("STOPPED")
    assert "stopping: answers under way have 30 s to end; once more (Ctrl-C) cancels them\n" in err


def test_what_nohup_has_set_aside_is_not_heeded(running, tmp_path, run_of):
    process = running(SLOW, preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
    process.send_signal(signal.SIGHUP)
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(1)
    process.send_signal(signal.SIGINT)
    assert process.ended()[0] == 130


@ALL
def test_before_the_load_a_signal_leaves_nothing_behind(started, scripted, tmp_path, wait_until, number):
    server = scripted(preflight=lambda call, wire: wire.hold())
    process = started(
        f"profile --url {server.url} --model m --artifact-dir run --isl 16", preexec_fn=heeding_hangups
    )
    wait_until(lambda: server.posts)
    crew = psutil.Process(process.pid).children(recursive=True)
    process.send_signal(number)
    code, out, err = process.ended()
    assert (code, out, err.splitlines()[-1]) == (130, "", "loadstone: error: interrupted.")
    assert list(tmp_path.iterdir()) == []
    assert [child for child in crew if child.is_running()] == []


def test_a_second_signal_cancels_them(started, scripted, tmp_path, run_of, wait_until):
    server = scripted(lambda call, wire: wire.hold() if call.row >= 3 else wire.answer(call))
    process = started(
        f"profile --url {server.url} --model m --artifact-dir run --streaming --isl 16 --concurrency 2 --request-count 9"
    )
    wait_until(lambda: {call.row for call in server.posts} >= {0, 1, 2, 3, 4})
    process.send_signal(signal.SIGINT)
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(1)
    process.send_signal(signal.SIGINT)
    code, _, _ = process.ended()
    run = run_of(tmp_path / "run")
    assert code == 130
    assert run.counts == {"ok": 3, "cancelled": 2}
    run.adds_up()


def test_a_third_signal_leaves_at_once_and_what_was_recorded_can_be_reported(
    running, loadstone, tmp_path, run_of, wait_until
):
    process = running(SLOW, preexec_fn=heeding_hangups)
    crew = psutil.Process(process.pid).children()
    [decoder] = process.children("loadstone.read.follow")
    decoder.suspend()  # main has to wait for it
    process.send_signal(signal.SIGINT)
    wait_until(lambda: not process.children("loadstone.load.worker"))
    process.send_signal(signal.SIGTERM)
    process.send_signal(signal.SIGHUP)  # not thrice the same: two of a kind may arrive as one
    code, out, err = process.ended()
    sentence = "interrupted; `loadstone report run` makes the report of what was recorded."
    assert (code, out, err.splitlines()[-1]) == (130, "", f"loadstone: error: {sentence}")
    assert [child for child in crew if child.is_running()] == []
    loadstone("report", str(tmp_path / "run"))
    run = run_of(tmp_path / "run")
    assert run.counts["ok-length"] > 10
    run.adds_up()


UP = """
import runpy, signal, sys
signal.signal(signal.SIGINT, signal.SIG_DFL)
print("up", flush=True)
runpy.run_module("loadstone", run_name="__main__", alter_sys=True)
"""
"""The command, once the interpreter is there: what a signal does before that is not ours to say."""


@pytest.mark.slow
def test_an_interrupt_in_the_first_second_shows_no_trace(scripted, tmp_path):
    server = scripted(lambda call, wire: wire.hold())
    for number in range(50):
        words = f"profile --url {server.url} --model m --streaming --isl 16 --artifact-dir run{number}"
        process = subprocess.Popen(
            [sys.executable, "-c", UP, *words.split()],
            cwd=tmp_path, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert process.stdout.readline() == "up\n"
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(number * 0.02)
        process.send_signal(signal.SIGINT)
        with suppress(subprocess.TimeoutExpired):
            process.wait(0.5)
        if process.poll() is None:  # the load has begun: do not wait for answers
            process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
        code = process.returncode
        assert code in (130, -signal.SIGINT), err
        assert "Traceback" not in err
        assert (code == -signal.SIGINT) == (err == "")
        home = tmp_path / f"run{number}"
        assert not home.exists() or (home / "report.json").exists() or "loadstone report" in err


def test_after_an_interrupt_an_open_loop_plans_no_more_than_was_due(
    started, engine, tmp_path, run_of, wait_until
):
    process = started(
        f"profile --url {engine.url} --artifact-dir run --streaming --isl 16 --osl 4 --request-rate 50"
        " --request-count 4000 --workers 2"
    )
    wait_until(lambda: run_of(tmp_path / "run").recorded_bytes > 10_000)
    process.send_signal(signal.SIGINT)
    code, _, _ = process.ended()
    run = run_of(tmp_path / "run")
    assert code == 130
    run.adds_up()
    assert max(run.due_ns) < run.measured.stop_ns - run.measured.start_ns
    assert run.report.outcomes.planned < 4000


def test_a_run_whose_main_process_was_killed_can_be_reported(running, loadstone, tmp_path, run_of):
    process = running(f"{SLOW} --warmup-request-count 3")
    crew = psutil.Process(process.pid).children()
    process.kill()
    _, alive = psutil.wait_procs(crew, timeout=20)
    assert alive == []
    done = loadstone("report", str(tmp_path / "run"))
    run = run_of(tmp_path / "run")
    assert done.code == Exit.FAILED
    assert run.report.run.end == "aborted"
    assert "aborted before its end" in done.out
    assert run.counts["ok-length"] > 10
    assert run.report.outcomes.warmup == {"ok-length": 3}
    assert run.report.metrics["time_to_first_token"].count == run.counts["ok-length"] - run.in_one_piece
    assert run.report.outcomes.planned == sum(run.counts.values()) == len(run.requests)


def test_a_run_that_goes_on_is_left_alone(running, loadstone, tmp_path, run_of):
    process = running(f"{SLOW} --workers 2")
    folder = str(tmp_path / "run")
    asked = loadstone("report", folder)
    forced = loadstone("profile", "--url", "sim:", "--artifact-dir", folder, "--force", "--isl", "16")
    assert (asked.code, asked.out, forced.code, forced.out) == (2, "", 2, "")
    assert asked.err == f"loadstone: error: {folder}: its run still goes on; ask again when it has ended.\n"
    assert "its run still goes on; choose another." in forced.err
    process.send_signal(signal.SIGINT)
    process.ended()
    run = run_of(folder)
    run.adds_up()
    assert run.counts == {"ok-length": run.report.outcomes.planned}


def test_nothing_is_left_running(running, tmp_path):
    process = running(f"{SLOW} --workers 2")
    crew = psutil.Process(process.pid).children(recursive=True)
    assert len(crew) == 4
    process.send_signal(signal.SIGINT)
    process.ended()
    assert [child for child in crew if child.is_running()] == []
    assert not (tmp_path / "run/recording").exists()


def test_a_folder_that_is_removed_meanwhile_is_told_in_one_sentence(running, tmp_path):
    process = running(SLOW)
    shutil.rmtree(tmp_path / "run", ignore_errors=True)
    process.send_signal(signal.SIGINT)
    code, out, err = process.ended()
    assert (code, out) == (Exit.FAILED, "")
    assert err.splitlines()[-1].endswith("; what it held is lost.")


def test_a_reader_of_stderr_that_has_stopped_reading_holds_nothing_up(tmp_path, run_of):
    """The pipe is full before the run begins; what would be said is not said, and the run goes on."""
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    with suppress(BlockingIOError):
        while True:
            os.write(writing, b"x" * 4096)
    os.set_blocking(writing, True)
    words = "profile --url sim:step_ms=1 --streaming --isl 16 --osl 4 --request-count 20 --artifact-dir run"
    process = subprocess.Popen(
        [sys.executable, "-m", "loadstone", *words.split()],
        cwd=tmp_path, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=writing,
    )  # fmt: skip
    try:
        assert process.wait(40) in (Exit.DONE, Exit.INVALID)
    finally:
        process.kill()
        os.close(reading)
        os.close(writing)
    assert sum(run_of(tmp_path / "run").counts.values()) == 20
