"""Where rows come from: each goes to one worker only."""

from __future__ import annotations

import os
import subprocess
import sys
from itertools import count

import pytest

from loadstone.load.job import PhaseOrder
from loadstone.load.rows import Dealt, Shared
from loadstone.plan.store import Draft, Writer, rows_file

END = Draft(-1, b"", -1, -1, 0, 0, 0)


def drafts(turns, first=0):
    """Conversations from number `first` on, of so many turns each."""
    return [
        Draft(-1, b"{}", -1, -1, conversation, turn, 0, int(turn == last - 1), opens=int(not turn))
        for conversation, last in enumerate(turns, first)
        for turn in range(last)
    ]


TAKE_ALL = """
import sys
from loadstone.load.job import PhaseOrder
from loadstone.load.rows import Shared
rows = Shared(PhaseOrder(number=0, rows_fd=int(sys.argv[1]), first_row=0))
print("ready", flush=True)
sys.stdin.readline()
while row := rows.next():
    print(row.request)
"""


@pytest.fixture
def plan(tmp_path):
    """A plan whose rows begin with number `first`: `plan(20)` adds conversations of one turn; drafts are added as given."""
    writers = {}
    fds = []
    conversations = count()

    def grow(rows, first=0):
        if not writers:
            writers[first] = Writer(tmp_path, [first])
            fds.append(os.open(tmp_path / rows_file(first), os.O_RDONLY))
        [(first, writer)] = writers.items()
        writer.append(
            [drafts([1], next(conversations))[0] for _ in range(rows)] if isinstance(rows, int) else rows
        )
        return fds[0]

    yield grow
    for writer in writers.values():
        writer.close()
    for fd in fds:
        os.close(fd)


def order(fd, first_row=0, rows=None):
    return PhaseOrder(number=0, rows_fd=fd, first_row=first_row, rows=rows)


def requests(source):
    return [row.request for row in iter(source.next, None)]


def test_processes_that_share_a_description_take_every_row_exactly_once(plan):
    fd = plan(20_000)
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


def test_a_phase_takes_its_own_rows_only(plan):
    shared = Shared(order(plan(10, first=3), first_row=3, rows=4))
    assert requests(shared) == [3, 4, 5, 6]
    assert not shared.starved


def test_a_phase_of_unknown_length_takes_what_there_is(plan):
    shared = Shared(order(plan(3)))
    assert requests(shared) == [0, 1, 2]
    assert shared.starved
    plan(2)
    assert requests(shared) == [3, 4]


def test_the_end_of_a_phase_is_not_starvation_even_where_the_plan_ends(plan):
    shared = Shared(order(plan(5), rows=5))
    assert requests(shared) == [0, 1, 2, 3, 4]
    assert not shared.starved


def test_a_row_that_is_not_composed_yet_is_starvation(plan):
    shared = Shared(order(plan(2), rows=4))
    assert requests(shared) == [0, 1]
    assert shared.starved
    plan(2)
    assert requests(shared) == [2, 3]
    assert not shared.starved


@pytest.mark.parametrize("workers", [1, 2, 3, 7])
def test_dealt_rows_are_a_partition(plan, workers):
    fd = plan(20, first=4)
    dealt = [requests(Dealt(order(fd, 4, 15), worker, workers)) for worker in range(workers)]
    assert sorted(row for rows in dealt for row in rows) == list(range(4, 19))
    assert dealt[0] == list(range(4, 19, workers))


def test_dealt_rows_are_waited_for_while_they_are_composed(plan):
    dealt = Dealt(order(plan(3), rows=6), worker=1, workers=2)
    assert requests(dealt) == [1]
    assert dealt.starved
    plan(3)
    assert requests(dealt) == [3, 5]
    assert not dealt.starved


@pytest.mark.parametrize("source", [Shared, lambda order: Dealt(order, 0, 1)])
def test_the_mark_of_its_end_ends_a_phase_of_unknown_length(plan, source):
    rows = source(order(plan(2)))
    assert requests(rows) == [0, 1]
    assert rows.starved
    plan([END, END])
    assert requests(rows) == []
    assert not rows.starved


def test_a_conversation_is_taken_by_the_row_that_opens_it(plan):
    fd = plan(drafts([2, 1, 3, 2]))
    shared = Shared(order(fd, rows=8))
    assert requests(shared) == [0, 2, 3, 6]
    assert not shared.starved
    os.lseek(fd, 0, os.SEEK_SET)
    assert [requests(Dealt(order(fd, rows=8), worker, 2)) for worker in (0, 1)] == [[0, 3], [2, 6]]


@pytest.mark.parametrize("source", [Shared, lambda order: Dealt(order, 0, 1)])
def test_later_rows_of_a_conversation_are_read_by_whoever_took_it(plan, source):
    rows = source(order(plan(drafts([3, 1]), first=7), first_row=7))
    first = rows.next()
    second = rows.after(first)
    assert [(row.request, row.turn, row.final) for row in (first, second, rows.after(second))] == [
        (7, 0, 0),
        (8, 1, 0),
        (9, 2, 1),
    ]
    assert requests(rows) == [10]


def test_a_later_row_that_is_not_composed_yet_is_none(plan):
    first, second = drafts([2])
    rows = Shared(order(plan([first])))
    taken = rows.next()
    assert rows.after(taken) is None
    plan([second])
    assert rows.after(taken).turn == 1


@pytest.mark.parametrize("source", [Shared, lambda order: Dealt(order, 0, 1)])
def test_what_is_wanted_is_the_row_behind_the_last_one_read(plan, source):
    rows = source(order(plan(3, first=50), first_row=50))
    assert rows.wanted == 50
    assert requests(rows) == [50, 51, 52]
    assert rows.wanted == 53
