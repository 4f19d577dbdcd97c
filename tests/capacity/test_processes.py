"""Results are the same in one process and in several; progress is told to who watches."""

from __future__ import annotations

import io
import math
import os

import pytest

from loadstone.capacity.processes import Progress, processes
from loadstone.errors import LoadstoneError, UsageError


class Terminal(io.StringIO):
    def isatty(self):
        return True


def refuse(_):
    raise UsageError("no")


def leave(_):
    os._exit(9)


@pytest.mark.parametrize("count", [1, 2])
def test_results_come_in_the_order_of_what_was_asked(count):
    with processes(count, Progress(io.StringIO())) as apply:
        assert list(apply(math.sqrt, [(n * n,) for n in range(20)], "roots")) == list(range(20))


@pytest.mark.parametrize("count", [1, 2])
def test_a_failure_comes_through(count):
    with processes(count, Progress(io.StringIO())) as apply, pytest.raises(UsageError, match="no"):
        list(apply(refuse, [(1,), (2,)], "tries"))


def test_a_process_that_is_killed_is_told_in_one_sentence():
    with pytest.raises(LoadstoneError, match="was killed"), processes(2, Progress(io.StringIO())) as apply:
        list(apply(leave, [(1,)], "tries"))


def test_on_a_terminal_one_line_is_written_over_and_taken_away(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    stream = Terminal()
    progress = Progress(stream)
    progress.tell(3, 40, "setups")
    progress.clear()
    assert stream.getvalue() == "\r\x1b[K3 of 40 setups · 0 s\r\x1b[K"


def test_after_some_the_rest_is_guessed_for_each_kind_by_itself(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    now = iter([100.0, 100.0, 110.0, 120.0, 130.0])
    monkeypatch.setattr("loadstone.capacity.processes.time.monotonic", lambda: next(now))
    stream = Terminal()
    progress = Progress(stream)
    progress.tell(0, 10, "setups")
    progress.tell(5, 10, "setups")
    progress.tell(0, 9, "points")
    progress.tell(5, 9, "points")
    assert stream.getvalue().split("\r\x1b[K")[1:] == [
        "0 of 10 setups · 0 s",
        "5 of 10 setups · 10 s · about 10 s left of these",
        "0 of 9 points · 20 s",
        "5 of 9 points · 30 s · about 8 s left of these",
    ]


def test_elsewhere_a_short_search_says_nothing():
    stream = io.StringIO()
    progress = Progress(stream)
    progress.tell(3, 40, "setups")
    progress.clear()
    assert stream.getvalue() == ""
