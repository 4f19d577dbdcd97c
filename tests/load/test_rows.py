"""Where rows come from: each goes to one worker only."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from loadstone.load.job import PhaseOrder
from loadstone.load.rows import Dealt, Shared
from loadstone.plan.store import ROW, ROWS, Draft, Writer

DRAFT = Draft(-1, b"{}", -1, -1, 0, 0, 0)

TAKE_ALL = """
import sys
from loadstone.load.job import PhaseOrder
from loadstone.load.rows import Shared
order = PhaseOrder(number=0, first_row=0, rows=None, start_ns=0, stop_ns=None, cut_ns=None, slots=1)
rows = Shared(int(sys.argv[1]), order)
print("ready", flush=True)
sys.stdin.readline()
while row := rows.next():
    print(row.request)
"""


def order(first_row=0, rows=None):
    return PhaseOrder(
        number=0, first_row=first_row, rows=rows, start_ns=0, stop_ns=None, cut_ns=None, slots=1
    )


@pytest.fixture
def plan(tmp_path):
    """A plan of as many rows as asked for; it can grow."""
    writer = Writer(tmp_path)

    def grow(rows):
        writer.append([DRAFT] * rows)
        return tmp_path / ROWS

    yield grow
    writer.close()


@pytest.fixture
def opened():
    fds = []

    def open_(path, first_row=0):
        fds.append(os.open(path, os.O_RDONLY))
        os.lseek(fds[-1], first_row * ROW.size, os.SEEK_SET)
        return fds[-1]

    yield open_
    for fd in fds:
        os.close(fd)


def requests(source):
    return [row.request for row in iter(source.next, None)]


def test_processes_that_share_a_description_take_every_row_exactly_once(plan, opened):
    fd = opened(plan(20_000))
    children = [
        subprocess.Popen(
            [sys.executable, "-c", TAKE_ALL, str(fd)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            pass_fds=[fd],
        )
        for _ in range(2)
    ]
    for child in children:
        assert child.stdout.readline() == "ready\n"
    for child in children:
        child.stdin.write("\n")
        child.stdin.flush()
    taken = [[int(line) for line in child.communicate(timeout=20)[0].split()] for child in children]
    assert [child.returncode for child in children] == [0, 0]
    assert all(mine == sorted(mine) for mine in taken)
    assert sorted(taken[0] + taken[1]) == list(range(20_000))


def test_a_phase_takes_its_own_rows_only(plan, opened):
    fd = opened(plan(10), first_row=3)
    shared = Shared(fd, order(first_row=3, rows=4))
    assert requests(shared) == [3, 4, 5, 6]
    assert not shared.starved


def test_a_phase_of_unknown_length_takes_what_there_is(plan, opened):
    shared = Shared(opened(plan(3)), order())
    assert requests(shared) == [0, 1, 2]
    assert shared.starved
    plan(2)
    assert requests(shared) == [3, 4]


def test_the_end_of_a_phase_is_not_starvation_even_where_the_plan_ends(plan, opened):
    shared = Shared(opened(plan(5)), order(rows=5))
    assert requests(shared) == [0, 1, 2, 3, 4]
    assert not shared.starved


def test_a_row_that_is_not_composed_yet_is_starvation(plan, opened):
    shared = Shared(opened(plan(2)), order(rows=4))
    assert requests(shared) == [0, 1]
    assert shared.starved
    plan(2)
    assert requests(shared) == [2, 3]
    assert not shared.starved


@pytest.mark.parametrize("workers", [1, 2, 3, 7])
def test_dealt_rows_are_a_partition(plan, workers):
    path = plan(20)
    dealt = [requests(Dealt(path, order(4, 15), worker, workers)) for worker in range(workers)]
    assert sorted(row for rows in dealt for row in rows) == list(range(4, 19))
    assert dealt[0] == list(range(4, 19, workers))


def test_dealt_rows_are_waited_for_while_they_are_composed(plan):
    dealt = Dealt(plan(3), order(rows=6), worker=1, workers=2)
    assert requests(dealt) == [1]
    assert dealt.starved
    plan(3)
    assert requests(dealt) == [3, 5]
    assert not dealt.starved


def test_a_dealt_source_gives_its_descriptor_back(plan):
    dealt = Dealt(plan(1), order(), 0, 1)
    fd = dealt._fd
    os.fstat(fd)
    del dealt
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(fd)
