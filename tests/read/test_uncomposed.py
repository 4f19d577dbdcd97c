"""Requests that were due and that the composer did not come to."""

from __future__ import annotations

from itertools import islice

import msgspec
import pytest

from loadstone.config import Config, InputConfig, LoadConfig
from loadstone.plan import schedule
from loadstone.read.uncomposed import Uncomposed


@pytest.fixture
def uncomposed(run_log, phase_log):
    """The rows of a phase by the load that was asked for; it begins with row 100."""

    def of(name="measured", data=None, **load):
        config = Config(load=LoadConfig(**load), input=data or InputConfig())
        log = run_log(seed=3, config=msgspec.to_builtins(config))
        phase = phase_log(name, 0, 1_000)
        phase.first_row = 100
        return Uncomposed(log, phase)

    return of


def test_each_was_due_as_the_plan_would_have_said(uncomposed):
    load = {"request_rate": 50.0, "concurrency": 2, "duration_s": 9.0}
    [phase] = schedule.phases(LoadConfig(**load))
    drawn = list(islice(schedule.due_times(phase, 3), 20))
    rest = uncomposed(**load)
    rows = [*rest.rows(105, 110), *rest.rows(113, 120)]
    assert [row.request for row in rows] == [*range(105, 110), *range(113, 120)]
    assert [row.due_ns for row in rows] == [*drawn[5:10], *drawn[13:20]]
    assert all(row.is_end for row in rows)


@pytest.mark.parametrize(
    ("load", "data"),
    [
        ({"concurrency": 2, "duration_s": 9.0}, None),
        ({"request_rate": 50.0, "duration_s": 9.0}, InputConfig(turns_mean=2.0)),
        ({"fixed_schedule": True}, InputConfig(file="trace.jsonl")),
    ],
)
def test_nothing_is_known_where_due_times_come_of_what_happens(uncomposed, load, data):
    assert uncomposed(data=data, **load).rows(100, 110) == []


def test_a_phase_of_another_name_is_not_known(uncomposed):
    assert uncomposed("other", request_rate=50.0, duration_s=9.0).rows(100, 110) == []
