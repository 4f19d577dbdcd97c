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


def test_elsewhere_a_short_search_says_nothing():
    stream = io.StringIO()
    progress = Progress(stream)
    progress.tell(3, 40, "setups")
    progress.clear()
    assert stream.getvalue() == ""
