"""A plan that is composed as it is read: nothing is waited for, nothing is composed that nobody wants."""

from __future__ import annotations

import pytest

from loadstone.compose import AHEAD_REQUESTS, ComposeJob
from loadstone.config import InputConfig, LoadConfig
from loadstone.endpoints import Ask
from loadstone.load.course import chain
from loadstone.plan import schedule
from loadstone.plan.store import read_rows
from loadstone.virtual.plan import Plan

SEED = 3


@pytest.fixture
def plan(tmp_path):
    """`plan(request_rate=...)`: the plan of a load, with nothing composed."""
    opened = []

    def make(turns=1.0, **load):
        data = InputConfig(isl_mean=8, tokenizer="builtin", turns_mean=turns)
        job = ComposeJob(
            folder=str(tmp_path), source="synthetic", input=data, endpoint="chat", ask=Ask(model="m", streaming=True),
            seed=SEED, template_tokens=0, phases=schedule.phases(LoadConfig(**load), data),
        )  # fmt: skip
        opened.append(Plan(job))
        return opened[-1]

    yield make
    for one in opened:
        one.close()


def composed(plan):
    return sum(1 for _ in read_rows(plan.folder))


def rows_of(plan):
    return plan.rows(chain(0, plan.phases, plan.rows_fds, SEED)[0])


def test_nothing_is_composed_before_it_is_wanted(plan):
    assert composed(plan(request_rate=10.0, request_count=1000)) == 0


@pytest.mark.parametrize("load", [{"request_rate": 10.0}, {"concurrency": 2}])
def test_every_row_comes_in_its_turn_and_then_there_are_no_more(plan, load):
    rows = rows_of(plan(request_count=700, **load))
    assert [rows.next().request for _ in range(700)] == list(range(700))
    assert rows.next() is None
    assert not rows.starved


def test_an_endless_phase_is_composed_no_further_than_it_is_read(plan):
    found = plan(concurrency=2, duration_s=1e6)
    rows = rows_of(found)
    for _ in range(600):
        rows.next()
    assert 600 <= composed(found) < 1000


def test_a_body_is_that_of_its_row(plan):
    found = plan(concurrency=1, request_count=3)
    rows = rows_of(found)
    bodies = [found.body(rows.next()) for _ in range(3)]
    assert len(set(bodies)) == 3
    assert all(body.startswith(b'{"model":"m"') for body in bodies)


def test_what_was_due_and_never_taken_is_composed_to_be_counted(plan):
    found = plan(turns=3.0, request_rate=100.0, arrival_pattern="constant", concurrency=1, sessions=2000)
    found.reach(0, lasted_ns=5_000_000_000)
    due_ns = [row.due_ns for row in read_rows(found.folder) if row.opens]
    assert max(due_ns) >= 5_000_000_000
    assert len(due_ns) < 1000


def test_where_due_times_can_be_drawn_again_so_much_is_enough(plan):
    found = plan(request_rate=1000.0, concurrency=1, duration_s=3600.0)
    found.reach(0, lasted_ns=3_600_000_000_000)
    assert composed(found) == AHEAD_REQUESTS


def test_without_a_limit_all_that_was_due_was_taken(plan):
    found = plan(request_rate=100.0, request_count=50)
    found.reach(0, lasted_ns=None)
    assert composed(found) == 0
