"""Runs that end before their time: asked to, told to, or killed. What was recorded is reported."""

from __future__ import annotations

import shutil
import signal
import subprocess

import psutil
import pytest

from loadstone.errors import Exit

SLOW = "--streaming --isl 16 --osl 40 --extra-inputs ignore_eos:true --concurrency 4 --request-count 4000"


@pytest.fixture
def running(started, engine, tmp_path, wait_until):
    """A run that would take minutes, when its first answers have come."""

    def start(words="", url=engine.url):
        process = started(f"profile --url {url} --artifact-dir run {SLOW} {words}")
        log = tmp_path / "run/run.json"
        wait_until(lambda: process.poll() is not None or log.exists())
        wait_until(lambda: process.poll() is not None or recorded_bytes(tmp_path / "run") > 200_000)
        assert process.poll() is None, process.communicate()[1]
        return process

    return start


def recorded_bytes(folder):
    """What the workers have written so far; an answer of 40 tokens is about 10,000."""
    return sum(file.stat().st_size for file in folder.glob("recording/w*.dat"))


def children(process, module):
    """The processes of a run that run a module."""
    found = psutil.Process(process.pid).children()
    return [child for child in found if module in child.cmdline()]


def ended(process):
    out, err = process.communicate(timeout=60)
    return process.returncode, out, err


def adds_up(run):
    assert run.report.outcomes.planned == sum(run.counts.values()) == len(run.requests)
    assert run.requests["request"].to_list() == list(range(len(run.requests)))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_one_signal_lets_answers_under_way_end(running, tmp_path, run_of, number):
    process = running()
    process.send_signal(number)
    code, out, _ = ended(process)
    run = run_of(tmp_path / "run")
    assert code == Exit.INTERRUPTED == 130
    assert run.report.run.end == "interrupted"
    assert run.counts == {"ok-length": run.report.outcomes.planned}
    assert 4 < run.report.outcomes.planned < 4000
    adds_up(run)
    assert "interrupted before its end" in out
    assert any("was interrupted" in notice for notice in run.report.run.notices)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_before_the_load_a_signal_leaves_nothing_behind(started, scripted, tmp_path, wait_until, number):
    server = scripted(preflight=lambda call, wire: wire.hold())
    process = started(f"profile --url {server.url} --model m --artifact-dir run --isl 16")
    wait_until(lambda: server.posts)
    crew = psutil.Process(process.pid).children(recursive=True)
    process.send_signal(number)
    code, out, err = ended(process)
    assert (code, out, err.splitlines()[-1]) == (130, "", "loadstone: error: interrupted.")
    assert list(tmp_path.iterdir()) == []
    assert [child for child in crew if child.is_running()] == []


def test_a_second_signal_cuts_them_off(started, scripted, tmp_path, run_of, wait_until):
    server = scripted(lambda call, wire: wire.hold() if call.row >= 3 else wire.answer(call))
    process = started(
        f"profile --url {server.url} --model m --artifact-dir run --streaming --isl 16 --concurrency 2 --request-count 9"
    )
    wait_until(lambda: {call.row for call in server.posts} >= {0, 1, 2, 3, 4})
    process.send_signal(signal.SIGINT)
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(1)
    process.send_signal(signal.SIGINT)
    code, _, _ = ended(process)
    run = run_of(tmp_path / "run")
    assert code == 130
    assert run.counts == {"ok": 3, "cut": 2}
    adds_up(run)


def test_after_an_interrupt_an_open_loop_plans_no_more_than_was_due(
    started, engine, tmp_path, run_of, wait_until
):
    process = started(
        f"profile --url {engine.url} --artifact-dir run --streaming --isl 16 --osl 4 --request-rate 50"
        " --request-count 4000 --workers 2"
    )
    wait_until(lambda: recorded_bytes(tmp_path / "run") > 10_000)
    process.send_signal(signal.SIGINT)
    code, _, _ = ended(process)
    run = run_of(tmp_path / "run")
    assert code == 130
    adds_up(run)
    assert max(run.due_ns) < run.measured.stop_ns - run.measured.start_ns
    assert run.report.outcomes.planned < 4000


def test_a_run_whose_main_process_was_killed_can_be_reported(running, loadstone, tmp_path, run_of):
    process = running("--warmup-request-count 3")
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
    assert run.report.metrics["time_to_first_token"].count == run.counts["ok-length"]
    assert run.report.outcomes.planned == sum(run.counts.values()) == len(run.requests)


def test_a_killed_worker_makes_the_run_invalid_and_loses_no_count(
    started, engine, tmp_path, run_of, wait_until
):
    process = started(
        f"profile --url {engine.url} --artifact-dir run --streaming --isl 16 --osl 40 --extra-inputs ignore_eos:true"
        " --concurrency 4 --request-count 120 --workers 2"
    )
    wait_until(lambda: recorded_bytes(tmp_path / "run") > 100_000)
    victim = children(process, "loadstone.load.worker")[0]
    victim.kill()
    code, out, err = ended(process)
    run = run_of(tmp_path / "run")
    assert code == Exit.INVALID == 5, err
    assert run.report.certificate.verdict == "INVALID"
    assert out.startswith("INVALID: worker ")
    assert run.check("workers").verdict == "INVALID"
    assert str(victim.pid) in run.check("workers").finding
    assert run.report.outcomes.planned == 120
    adds_up(run)
    assert run.counts["ok-length"] > 40
    assert 1 <= 120 - run.counts["ok-length"] <= 4


def test_a_killed_decoder_costs_nothing_but_time(started, engine, tmp_path, run_of, wait_until):
    process = started(
        f"profile --url {engine.url} --artifact-dir run --streaming --isl 16 --osl 40 --concurrency 4"
        " --extra-inputs ignore_eos:true --request-count 100 --warmup-request-count 5"
    )
    wait_until(lambda: recorded_bytes(tmp_path / "run") > 100_000)
    [victim] = children(process, "loadstone.read.follow")
    victim.kill()
    ended(process)
    run = run_of(tmp_path / "run")
    assert run.counts == {"ok-length": 100}
    assert run.report.outcomes.warmup == {"ok-length": 5}
    assert run.requests["output_tokens"].to_list() == [40] * 100
    assert run.against == []


def test_a_server_that_dies_ends_the_run_early_and_is_no_fault_of_it(started, tmp_path, run_of, wait_until):
    server = started("simulate --port 0 --step-ms 1")
    url = server.stdout.readline().split()[0]
    process = started(
        f"profile --url {url} --artifact-dir run --streaming --isl 16 --osl 40 --concurrency 4"
        " --extra-inputs ignore_eos:true --request-count 200"
    )
    wait_until(lambda: recorded_bytes(tmp_path / "run") > 100_000)
    server.kill()
    ended(process)
    run = run_of(tmp_path / "run")
    assert run.report.run.end == "complete"
    assert run.report.outcomes.planned == 200
    adds_up(run)
    assert set(run.counts) <= {"ok-length", "reset", "truncated", "connect"}
    assert run.counts["connect"] > 50
    assert set(run.against) <= {"failures"}, "the client did what it should"


def test_a_built_in_engine_that_dies_stops_the_load_and_is_named(started, tmp_path, run_of, wait_until):
    process = started(
        "profile --url sim:step_ms=1 --artifact-dir run --streaming --isl 16 --osl 40 --request-rate 20"
        " --extra-inputs ignore_eos:true --request-count 2000"
    )
    wait_until(lambda: recorded_bytes(tmp_path / "run") > 100_000)
    [victim] = children(process, "loadstone.sim.server")
    victim.kill()
    code, _, _ = ended(process)
    run = run_of(tmp_path / "run")
    assert (code, run.report.run.end) == (Exit.FAILED, "aborted")
    assert any("loadstone.sim.server died" in notice for notice in run.report.run.notices)
    adds_up(run)
    assert run.report.outcomes.planned < 2000


def test_a_run_that_goes_on_is_left_alone(running, loadstone, tmp_path, run_of):
    process = running("--workers 2")
    folder = str(tmp_path / "run")
    asked = loadstone("report", folder)
    forced = loadstone("profile", "--url", "sim:", "--artifact-dir", folder, "--force", "--isl", "16")
    assert (asked.code, asked.out, forced.code, forced.out) == (2, "", 2, "")
    assert asked.err == f"loadstone: error: {folder}: its run still goes on; ask again when it has ended.\n"
    assert "its run still goes on; choose another." in forced.err
    process.send_signal(signal.SIGINT)
    ended(process)
    run = run_of(folder)
    adds_up(run)
    assert run.counts == {"ok-length": run.report.outcomes.planned}


def test_nothing_is_left_running(running, tmp_path):
    process = running("--workers 2")
    crew = psutil.Process(process.pid).children(recursive=True)
    assert len(crew) == 3
    process.send_signal(signal.SIGINT)
    ended(process)
    assert [child for child in crew if child.is_running()] == []
    assert not (tmp_path / "run/recording").exists()


def test_a_folder_that_is_removed_meanwhile_is_told_in_one_sentence(running, tmp_path):
    process = running()
    shutil.rmtree(tmp_path / "run", ignore_errors=True)
    process.send_signal(signal.SIGINT)
    code, out, err = ended(process)
    assert (code, out) == (Exit.FAILED, "")
    assert err.splitlines()[-1].endswith("was removed while the run lasted; what it held is lost.")
