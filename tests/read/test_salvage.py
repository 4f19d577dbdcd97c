"""A run whose main process died: its phases come back from what was recorded."""

from __future__ import annotations

import polars as pl
import pytest

from loadstone import config
from loadstone.errors import UsageError
from loadstone.folder import read_run, write_run
from loadstone.plan import schedule
from loadstone.plan.schedule import Phase
from loadstone.plan.store import WHEN_A_SLOT_FREES
from loadstone.read import salvage, tables


@pytest.fixture
def crashed(run, wire, monkeypatch):
    """A run of two phases that died: the requests that were sent of it, and when."""

    def crashed(sent, phases):
        def due_ns(number, i):
            return 50 * i if phases[number].timed else WHEN_A_SLOT_FREES

        firsts = [phase.first_row for phase in phases]
        run.plan([(phase.name, 4) for phase in phases], firsts=firsts, due_ns=due_ns)
        log = read_run(run.folder)
        log.phases, log.end = [], "aborted"
        log.config = log.config | {"load": {}}
        write_run(run.folder, log)
        recorder = run.recorder()
        for request, at_ns in sent:
            answer = wire.head + wire.token("a") + wire.finish()
            recorder.flight(request, [(at_ns + 5, answer)], sent_ns=at_ns, due=at_ns - 1)
        monkeypatch.setattr(schedule, "phases", lambda load, data: phases)
        salvage.salvage(run.folder)
        return read_run(run.folder)

    return crashed


WARMUP = Phase(name="warmup", kind="warmup", pattern="closed", slots=2)
LOW = Phase(name="low", kind="measured", pattern="constant", first_row=100)
HIGH = Phase(name="high", kind="measured", pattern="constant", seamless=True, slots=4, first_row=200)


def test_every_phase_of_which_something_was_seen_is_there(crashed, run):
    log = crashed([(1, 50), (100, 200), (102, 300), (201, 290)], [WARMUP, LOW, HIGH])
    told = [
        (phase.name, phase.kind, phase.seamless, phase.first_row, phase.planned, phase.dealt)
        for phase in log.phases
    ]
    assert told == [
        ("warmup", "warmup", False, 0, 2, False),
        ("low", "measured", False, 100, 3, True),
        ("high", "measured", True, 200, 2, False),
    ]
    assert [(phase.start_ns, phase.stop_ns, phase.end_ns) for phase in log.phases] == [
        (49, 50, 55),
        (199, 300, 305),
        (239, 290, 295),  # its first row, of which nothing was seen, was due then
    ]
    assert log.notices == [salvage.CUT_OFF]


def test_rows_up_to_the_last_one_seen_are_not_sent(crashed, run):
    crashed([(1, 50), (100, 200), (102, 300), (201, 290)], [WARMUP, LOW, HIGH])
    tables.build(run.folder)
    table = pl.read_parquet(run.folder / "requests.parquet")
    assert table["request"].to_list() == [0, 1, 100, 101, 102, 200, 201]
    assert table["outcome"].to_list() == ["not-sent", "ok", "ok", "not-sent", "ok", "not-sent", "ok"]
    assert table["phase"].to_list() == ["warmup"] * 2 + ["low"] * 3 + ["high"] * 2
    assert table["fault"].drop_nulls().to_list() == [
        "not sent before the run ended",  # the warm-up had ended
        "the run was cut off and nothing of it was recorded",
        "the run was cut off and nothing of it was recorded",
    ]


def test_what_was_due_by_the_last_send_counts_and_was_not_sent(crashed, run):
    low = Phase(name="low", kind="measured", pattern="constant", slots=1)
    log = crashed([(0, 10_000), (1, 10_120)], [low])
    assert [(phase.start_ns, phase.stop_ns, phase.planned) for phase in log.phases] == [(9_999, 10_120, 3)]
    tables.build(run.folder)
    table = pl.read_parquet(run.folder / "requests.parquet")
    assert table["outcome"].to_list() == ["ok", "ok", "not-sent"]
    assert table["due_ns"].to_list() == [9_999, 10_119, 9_999 + 100]
    assert table["fault"].to_list()[2] == "the run was cut off and nothing of it was recorded"


def test_a_phase_with_due_times_began_before_its_first_request_was_due(crashed, run):
    low = Phase(name="low", kind="measured", pattern="constant")
    log = crashed([(1, 10_000)], [low])  # what became of row 0 is not known
    assert [(phase.start_ns, phase.planned) for phase in log.phases] == [(9_999 - 50, 2)]


def test_of_a_closed_loop_only_the_rows_up_to_the_last_one_seen_count(crashed):
    closed = Phase(name="closed", kind="measured", pattern="closed", slots=2)
    log = crashed([(0, 10), (1, 30)], [closed])
    assert [(phase.start_ns, phase.planned) for phase in log.phases] == [(9, 2)]


def test_a_run_of_one_phase(crashed):
    log = crashed([(0, 10), (2, 30)], [WARMUP])
    assert [(phase.name, phase.planned) for phase in log.phases] == [("warmup", 3)]


def test_a_run_that_died_before_anything_was_sent(crashed):
    assert crashed([], [WARMUP, LOW]).phases == []


def test_a_run_that_goes_on_is_left_alone(run, monkeypatch):
    run.plan([("measured", 1)])
    monkeypatch.setattr(salvage.run_folder, "goes_on", lambda folder: True)
    with pytest.raises(UsageError, match="its run still goes on"):
        salvage.salvage(run.folder)


def test_phases_are_those_that_the_configuration_asks_for(run, wire):
    run.plan([("warmup", 3), ("measured", 2)], firsts=(0, 3))
    log = read_run(run.folder)
    log.phases, log.end = [], "aborted"
    load = config.LoadConfig(warmup_request_count=3, request_count=2)
    log.config = log.config | {"load": salvage.msgspec.to_builtins(load)}
    write_run(run.folder, log)
    recorder = run.recorder()
    for request in (2, 3):
        recorder.flight(request, [(9, wire.head + wire.token("a") + wire.finish())], sent_ns=8)
    salvage.salvage(run.folder)
    phases = read_run(run.folder).phases
    assert [(phase.name, phase.first_row, phase.planned) for phase in phases] == [
        ("warmup", 0, 3),
        ("measured", 3, 1),
    ]
