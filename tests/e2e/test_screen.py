"""What a person sees: results on stdout, talk on stderr, colour for terminals, lines that fit."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios

import pytest

LOAD = "--streaming --isl 16 --osl 4 --request-count 20 --concurrency 2"
ESCAPE = "\x1b"


@pytest.fixture(scope="module")
def run(good, engine):
    return good(f"--url {engine.url} {LOAD}")


def test_results_are_on_stdout_and_talk_on_stderr(run, engine):
    assert run.out.splitlines()[0].startswith(("VALID: ", "DEGRADED: ", "INVALID: "))
    assert "time to first token" in run.out
    address, folder, *progress = run.err.splitlines()
    assert re.fullmatch(rf"http://{engine.url} · model sim · 20 requests · seed \d+", address)
    assert folder.startswith(f"run folder {run.path} ")
    assert progress[0].startswith("measured  0/20  ")


def test_the_summary_is_one_screen_that_ends_with_the_command_and_the_files(run, engine):
    lines = run.out.splitlines()
    assert len(lines) <= 50
    command = f"loadstone profile --artifact-dir {run.path} --url {engine.url} {LOAD}"
    assert command in lines
    assert lines[lines.index(command) + 1] == f"files  {run.path}/"
    assert len(lines) - lines.index(command) <= 5
    assert max(len(line) for line in lines if line not in (command, f"files  {run.path}/")) <= 100
    assert (run.path / "summary.txt").read_text() == run.out


def test_elsewhere_than_on_a_terminal_there_is_no_colour(run):
    assert ESCAPE not in run.out + run.err
    assert "\r" not in run.err


def test_a_terminal_without_unicode_gets_the_summary_all_the_same(loadstone, run):
    done = loadstone("report", str(run.path), PYTHONIOENCODING="ascii:strict")
    assert done.code == run.code
    assert done.out == run.out.encode("ascii", "replace").decode()


def test_a_name_with_terminal_codes_is_written_out_in_the_log_too(good):
    run = good(f"--url 'sim:model=\x1b[31mred' {LOAD}")
    assert "model \\x1b[31mred" in (run.path / "loadstone.log").read_text()
    assert ESCAPE not in run.out + run.err + (run.path / "loadstone.log").read_text()


def test_forty_columns_are_enough(good, loadstone, run):
    lines = loadstone("report", str(run.path), COLUMNS="40").out.splitlines()
    long = [line for line in lines if len(line) > 40]
    assert [line for line in long if not line.startswith(("loadstone profile ", "files  "))] == []
    assert any(line.startswith("TTFT") for line in lines)


@pytest.fixture
def terminal(tmp_path):
    """Runs a command on a terminal of its own; what the terminal showed, and the exit code."""

    def run(words, columns, **changes):
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
        kept = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "COLUMNS")}
        process = subprocess.Popen(
            [sys.executable, "-m", "loadstone", *words.split()],
            cwd=tmp_path, env={**kept, "TERM": "xterm-256color", **changes}, stdin=theirs, stdout=theirs, stderr=theirs,
        )  # fmt: skip
        os.close(theirs)
        shown = b""
        while True:
            try:
                received = os.read(ours, 65536)
            except OSError:  # how Linux tells that the other side is closed
                break
            if not received:
                break
            shown += received
        os.close(ours)
        return process.wait(60), shown.decode()

    return run


def test_a_terminal_gets_one_line_that_is_redrawn_and_a_coloured_verdict(terminal, engine):
    code, shown = terminal(f"profile --url {engine.url} {LOAD} --artifact-dir run", 100)
    assert code in (0, 5)
    assert "\r\x1b[Kmeasured" in shown
    assert re.search(r"\x1b\[[0-9;]*m(VALID|DEGRADED|INVALID)\x1b\[0m: ", shown)
    assert re.search(r"measured  [█░]+  \d+/20", shown)


def test_no_color_is_heeded(terminal, engine):
    code, shown = terminal(f"profile --url {engine.url} {LOAD} --artifact-dir run", 100, NO_COLOR="1")
    assert code in (0, 5)
    assert "measured" in shown
    assert re.search(r"\x1b\[[0-9;]*m", shown) is None


def test_a_narrow_terminal_is_never_overrun(terminal, engine):
    _, shown = terminal(f"profile --url {engine.url} {LOAD} --artifact-dir run", 40)
    redrawn = re.findall(r"\r\x1b\[K(measured[^\r\x1b]*)", shown)
    assert redrawn
    assert max(map(len, redrawn)) <= 40


def test_no_progress_on_a_terminal_when_none_is_wanted(terminal, engine):
    _, shown = terminal(f"profile --url {engine.url} {LOAD} --artifact-dir run --ui none", 100)
    assert "\r\x1b[Kmeasured" not in shown
    assert "time to first token" in shown


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_a_closed_stream_is_no_reason_to_fail(engine, tmp_path, run_of, closed):
    command = f"{sys.executable} -m loadstone profile --url {engine.url} {LOAD} --artifact-dir run {closed}"
    code = subprocess.run(command, shell=True, cwd=tmp_path, capture_output=True, timeout=60).returncode
    assert code in (0, 5)
    assert run_of(tmp_path / "run").report.outcomes.planned == 20


def test_results_that_cannot_be_printed_are_a_failure_and_no_defect(run, tmp_path):
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "loadstone", "report", str(run.path)],
            cwd=tmp_path, stdout=full, stderr=subprocess.PIPE, text=True, timeout=60,
        )  # fmt: skip
    assert done.returncode == 1
    assert done.stderr == (
        "loadstone: error: the summary could not be printed (No space left on device); it is in"
        f" {run.path / 'summary.txt'}.\n"
    )


def test_a_verdict_without_advice_has_no_empty_line_under_it(started, scripted, wait_until):
    server = scripted(lambda call, wire: wire.hold())
    process = started(f"profile --url {server.url} --model m --isl 16 --request-count 1")
    wait_until(lambda: any(call.row == 0 for call in server.posts))
    process.send_signal(signal.SIGINT)
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(1)
    process.send_signal(signal.SIGINT)
    _, out, _ = process.ended()
    stopped, rest = out.split("\n", 1)
    assert stopped.startswith("STOPPED: by you")
    said, _, _ = rest.partition("\n\nm · chat")
    assert said.startswith("INVALID: the run was stopped before any answer had ended.")
    assert all(line.strip() for line in said.splitlines()), (
        "a busy machine may add findings of its own, and no empty line"
    )
