"""Children that are spoken to in lines. They are small modules of the test's own."""

from __future__ import annotations

import os
import signal

import msgspec
import pytest

from loadstone import child as child_module
from loadstone.child import Child, Silence

pytestmark = pytest.mark.timeout(20)


@pytest.fixture
def child(tmp_path):
    """Starts a module made of `code`; it is ended with the test."""
    started = []

    def start(code, name="spoken_to", **how):
        (tmp_path / f"{name}.py").write_text("import os, sys, time\n" + code)
        how["env"] = {"PYTHONPATH": str(tmp_path), **how.get("env", {})}
        started.append(Child(name, tmp_path / "log", **how))
        return started[-1]

    yield start
    for one in started:
        one.kill()
        one.close()


ECHO = "for line in sys.stdin: print(line, end='', flush=True)"


def test_messages_go_both_ways(child):
    one = child(ECHO)
    message = {"text": "ünï\n", "n": 1}
    one.tell(message)
    assert msgspec.json.decode(one.hear_line(20)) == message
    assert one.close() == 0


def test_a_large_message_goes_through_a_full_pipe(child):
    one = child("print(len(sys.stdin.readline()), flush=True)")
    one.tell("x" * 1_000_000)
    assert one.hear_line(20) == b"1000003"


def test_several_lines_in_one_read_and_one_line_in_several(child):
    one = child("sys.stdout.write('a\\nb\\nc'); sys.stdout.flush(); sys.stdin.readline(); print('d')")
    lines = []
    while len(lines) < 2:
        lines += one.hear()
    one.tell(1)
    while not one.ended:
        lines += one.hear()
    assert lines == [b"a", b"b", b"cd"]


def test_a_child_that_ends_without_a_word(child):
    one = child("sys.exit(3)")
    assert one.hear_line(20) is None
    assert one.ended
    one.tell("nobody hears this")
    assert one.close() == 3


def test_errors_go_to_the_log(child, tmp_path):
    (tmp_path / "log").write_text("before\n")
    one = child("sys.exit('what went wrong')")
    assert one.close() == 1
    assert (tmp_path / "log").read_text() == "before\nwhat went wrong\n"


def test_a_child_whose_stdin_ends_is_waited_for(child):
    one = child("sys.stdin.read(); sys.exit(4)")
    assert one.close() == 4


def test_a_child_that_does_not_end_is_killed(child):
    one = child("print(1, flush=True); time.sleep(1000)")
    one.hear_line(20)
    assert one.close(wait_s=0.05) == -signal.SIGKILL


def test_killing(child):
    one = child("print(1, flush=True); time.sleep(1000)")
    one.hear_line(20)
    one.kill()
    assert one.hear_line(20) is None
    assert one.close() == -signal.SIGKILL
    one.kill()


def test_an_answer_that_does_not_come_is_not_awaited_for_ever(child):
    one = child("print(1, flush=True); sys.stdin.readline(); print(2, flush=True)")
    assert one.hear_line(20) == b"1"
    assert one.hear_line(0.01) is None
    assert not one.ended
    one.tell("go on")
    assert one.hear_line(20) == b"2"


def test_a_child_that_takes_no_order_is_killed(child, monkeypatch):
    monkeypatch.setattr(child_module, "TELL_S", 0.05)
    one = child("print(1, flush=True); time.sleep(1000)")
    one.hear_line(20)
    one.tell("x" * 1_000_000)
    assert one.hear_line(20) is None
    assert one.death() == "took no order for 0.05 s, then killed"


@pytest.mark.parametrize(
    ("end", "how"),
    [
        ("os.kill(os.getpid(), 9)", "killed by signal 9"),
        ("os.kill(os.getpid(), 15)", "killed by signal 15"),
        ("sys.exit(3)", "exit status 3"),
        ("raise MemoryError", "exit status 1"),
    ],
)
def test_how_it_died(child, end, how):
    one = child(end)
    assert one.hear_line(20) is None
    assert one.death() == how
    assert one.exited()
    assert one.failed()


def test_one_that_closes_its_output_and_goes_on_is_ended(child):
    one = child("os.close(1); time.sleep(1000)")
    assert one.hear_line(20) is None
    assert one.death() == "closed its output, then killed"


def test_why_we_killed_it_is_how_it_died_unless_it_was_dead_before(child):
    ours, own = child("time.sleep(1000)"), child("sys.exit(3)", name="other")
    own.hear_line(20)
    assert own.death() == "exit status 3"
    for one in (ours, own):
        one.kill("too slow, then killed")
        one.kill("another reason")
    assert (ours.death(), own.death()) == ("too slow, then killed", "exit status 3")


def test_a_stopped_child_is_told_from_one_that_sleeps(child):
    one = child("print(1, flush=True); sys.stdin.readline()")
    one.hear_line(20)
    assert not one.stopped()
    os.kill(one.pid, signal.SIGSTOP)
    os.waitid(os.P_PID, one.pid, os.WSTOPPED | os.WNOWAIT)
    assert one.stopped()
    os.kill(one.pid, signal.SIGCONT)
    one.tell("go on")
    one.close()
    assert not one.stopped()
    assert one.cpu_s() == 0


def test_processor_time_is_seen(child):
    one = child(
        "end = time.process_time() + 0.05\nwhile time.process_time() < end: pass\nprint(1, flush=True); sys.stdin.read()"
    )
    one.hear_line(20)
    assert one.cpu_s() >= 0.05


def test_the_terminals_signals_do_not_reach_it(child):
    one = child("print(os.getsid(0), flush=True); time.sleep(1000)")
    assert int(one.hear_line(20)) == one.pid != os.getsid(0)


def test_descriptors_and_environment_are_handed_on(child, monkeypatch):
    monkeypatch.setenv("OF_THE_PARENT", "kept")
    read, write = os.pipe()
    one = child(
        f"os.write({write}, b'hello'); print(os.environ['OF_THE_PARENT'], os.environ['OWN'], flush=True)",
        pass_fds=[write],
        env={"OWN": "value"},
    )
    assert one.hear_line(20) == b"kept value"
    assert os.read(read, 10) == b"hello"
    os.close(read)
    os.close(write)


def test_a_file_in_the_working_directory_does_not_hide_an_import(child, tmp_path, monkeypatch):
    where = tmp_path / "cwd"
    where.mkdir()
    (where / "json.py").write_text("raise SystemExit('the wrong json')")
    monkeypatch.chdir(where)
    assert child("import json; print('right', flush=True)").hear_line(20) == b"right"


def test_a_child_notices_that_its_parent_is_gone(child):
    one = child("print(1, flush=True); sys.stdin.read(); open('/dev/null')")
    one.hear_line(20)
    assert one.close(wait_s=10) == 0  # were it killed, the status would say so


MS = 1_000_000


def test_silence_lasts_from_the_look_that_saw_the_value_first():
    silence = Silence()
    assert silence.look({0: 7, 1: 7}, 0) == {0: 0, 1: 0}
    assert silence.look({0: 7, 1: 8}, 250 * MS) == {0: 0.25, 1: 0}
    assert silence.look({0: 7, 1: 8}, 500 * MS) == {0: 0.5, 1: 0.25}
    assert silence.look({0: 9}, 750 * MS) == {0: 0}


def test_who_stood_still_himself_has_seen_no_silence():
    silence = Silence()
    silence.look({0: 7}, 0)
    assert silence.look({0: 7}, 60_000 * MS) == {0: 0}
    assert silence.look({0: 7}, 60_900 * MS) == {0: 0.9}
