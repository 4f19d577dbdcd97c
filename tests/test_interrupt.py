from __future__ import annotations

import signal
import subprocess
import sys

import pytest

from loadstone.interrupt import SIGNALS, Interrupt, leave_at_once, unwinding

ALL = pytest.mark.parametrize("number", SIGNALS)


@pytest.fixture(autouse=True)
def heeded():
    """Handlers as a shell leaves them, and put back whatever a test does to them."""
    before = {number: signal.getsignal(number) for number in (*SIGNALS, signal.SIGALRM)}
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def handlers():
    return [signal.getsignal(number) for number in SIGNALS]


@ALL
def test_signals_are_counted_and_do_nothing_else(number):
    with Interrupt() as interrupt:
        assert interrupt.asked == 0
        signal.raise_signal(number)
        assert interrupt.asked == 1
        signal.raise_signal(signal.SIGINT)
        assert interrupt.asked == 2


def test_the_third_is_too_many_and_further_ones_disturb_nothing():
    with pytest.raises(KeyboardInterrupt), Interrupt():
        for number in SIGNALS:
            signal.raise_signal(number)
    for number in SIGNALS:
        signal.raise_signal(number)


def test_handlers_are_put_back():
    before = handlers()
    with Interrupt():
        assert set(handlers()).isdisjoint(before)
    assert handlers() == before


def test_handlers_are_put_back_after_a_failure():
    before = handlers()
    with pytest.raises(KeyError), Interrupt():
        raise KeyError
    assert handlers() == before


def test_a_context_counts_for_itself():
    with Interrupt() as outer:
        with Interrupt() as inner:
            signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGTERM)
    assert (outer.asked, inner.asked) == (1, 1)


def test_a_hangup_that_was_set_aside_stays_so():
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    with Interrupt() as interrupt:
        signal.raise_signal(signal.SIGHUP)
        assert interrupt.asked == 0


@ALL
def test_while_there_is_something_to_take_back_the_first_raises_and_no_other(number):
    taken_back = []
    with pytest.raises(KeyboardInterrupt), unwinding():
        try:
            signal.raise_signal(number)
        finally:
            signal.raise_signal(number)
            taken_back.append(number)
    assert taken_back == [number]


def test_nothing_came():
    before = handlers()
    with unwinding():
        pass
    assert handlers() == before


def said(code):
    """What a fresh interpreter says on stderr while it runs `code`, and its exit status."""
    done = subprocess.run(
        [sys.executable, "-c", "import signal\nfrom loadstone.interrupt import *\n" + code],
        capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    return done.returncode, done.stdout, done.stderr


@ALL
def test_before_there_is_anything_a_signal_leaves_at_once(number):
    heeding = "signal.signal(signal.SIGHUP, signal.SIG_DFL)\nleave_at_once()\n"
    raising = f"signal.raise_signal({int(number)})\nprint('still there')"
    assert said(heeding + raising) == (130, "", "loadstone: error: interrupted.\n")


@pytest.mark.parametrize(("before", "after"), [(0, 2), (1, 2), (2, 1)])
def test_after_the_load_the_second_or_altogether_the_third_leaves_with_its_sentence(before, after):
    code = f"""
with Interrupt() as interrupt:
    for _ in range({before}): signal.raise_signal(signal.SIGINT)
    interrupt.part_with("make it later.")
    for _ in range({after} - 1): signal.raise_signal(signal.SIGINT)
    print("still there", flush=True)
    signal.raise_signal(signal.SIGINT)
    print("too long there", flush=True)
"""
    assert said(code) == (130, "still there\n", "loadstone: error: make it later.\n")


def test_an_interrupt_that_comes_within_a_finalizer_is_not_lost():
    code = """
import sys, time
class Finalized:
    def __del__(self):
        signal.raise_signal(signal.SIGINT)
leave_at_once()
with unwinding():
    try:
        Finalized()
        time.sleep(60)
    except KeyboardInterrupt:
        print("raised")
"""
    assert said(code) == (0, "raised\n", "")


def test_other_failures_of_finalizers_are_told_as_ever():
    code = """
class Finalized:
    def __del__(self):
        raise KeyError("x")
leave_at_once()
Finalized()
"""
    status, _, err = said(code)
    assert status == 0
    assert "KeyError: 'x'" in err


def test_leaving_is_arranged_for_every_signal(monkeypatch):
    monkeypatch.setattr(sys, "unraisablehook", sys.unraisablehook)
    before = handlers()
    leave_at_once()
    assert all(handler not in before for handler in handlers())


def test_when_all_is_done_a_signal_changes_nothing():
    code = (
        "import os, signal, sys\n"
        "from loadstone import interrupt\n"
        "interrupt.leave_at_once()\n"
        "interrupt.all_done()\n"
        "class Last:\n"
        "    def __del__(self, kill=os.kill, me=os.getpid()):\n"
        "        kill(me, 2)\n"
        "sys.last = Last()\n"
        "sys.exit(7)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=20)
    assert (done.returncode, done.stderr) == (7, "")
