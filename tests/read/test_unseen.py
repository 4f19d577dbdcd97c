"""What became of requests that left no trace: words, and that the counts add up whatever happened."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loadstone.folder import DeathLog, PhaseLog, read_run, write_run
from loadstone.plan.store import Row
from loadstone.read import tables, unseen
from loadstone.read.outcome import CLIENT_FAULT, NOT_SENT
from loadstone.read.unseen import Before, Fate, Unseen

KILLED = "killed by signal 9"


@pytest.fixture
def log(run):
    """The log of a run of two phases, the first of 4 rows, and 3 workers."""
    run.plan([("warmup", 4), ("measured", 10)], workers=3)
    log = read_run(run.folder)
    for phase, start_ns, stop_ns in zip(log.phases, (100, 1_000), (900, 1_900), strict=True):
        phase.start_ns, phase.stop_ns, phase.end_ns = start_ns, stop_ns, stop_ns + 50
    return log


def died(worker, noticed_ns=2_000):
    return DeathLog(process=f"worker {worker}", fault=KILLED, noticed_ns=noticed_ns)


def fate(
    log, request, phase=1, seen_rows=0, composed=True, timed=True, conversation=None, turn=0, before=None
):
    due_ns = 0 if timed else -1
    row = Row(request, due_ns, 0, 2, 7, 9, request if conversation is None else conversation, turn, phase)
    return Unseen(log, log.phases[phase], seen_rows).fate(request, row if composed else None, before)


def test_a_row_dealt_to_a_worker_that_died_is_lost_with_it(log):
    log.phases[1].dealt = True
    log.deaths = [died(1)]
    lost = Fate(CLIENT_FAULT, "lost with worker 1: killed by signal 9", 1)
    assert [fate(log, request) for request in (4, 7, 10)] == [lost] * 3
    assert [fate(log, request).outcome for request in (5, 6, 8)] == [NOT_SENT] * 3


def test_a_conversation_is_dealt_as_a_whole(log):
    log.phases[1].dealt = True
    log.deaths = [died(1)]
    rows = [fate(log, 4 + turn, conversation=7, turn=turn) for turn in range(3)]
    assert [row.worker for row in rows] == [1, 1, 1]


def test_a_turn_was_with_the_worker_that_had_the_turn_before_it(log):
    log.phases[1].drawn = 6
    log.deaths = [died(2)]
    assert fate(log, 5, turn=1, before=Before("ok", 2)).worker == 2
    assert fate(log, 5, turn=1, before=Before("ok", 0)) == Fate(NOT_SENT, unseen.NOT_OVER)


@pytest.mark.parametrize(
    ("outcome", "words"),
    [
        ("reset", "an earlier turn of its conversation failed"),
        ("client-fault", "an earlier turn of its conversation failed"),
        ("cancelled-as-planned", "an earlier turn of its conversation was cancelled as asked"),
        ("ok", "its conversation was not over when the load ended"),
        ("cut", "its conversation was not over when the load ended"),
        ("not-sent", "its conversation was not over when the load ended"),
    ],
)
def test_a_turn_whose_conversation_ended_early(outcome, words, log):
    assert fate(log, 5, turn=1, before=Before(outcome, 0)) == Fate(NOT_SENT, words)


def test_a_turn_whose_conversation_the_interruption_ended(log):
    log.stopped_by = "user"
    assert fate(log, 5, turn=1, before=Before("cancelled", 0)).fault == "the run was interrupted"
    assert fate(log, 5, turn=1, before=Before("reset", 0)).fault == unseen.TURN_FAILED


def test_a_worker_that_died_later_lost_nothing_of_an_earlier_phase(log):
    log.phases[0].dealt = log.phases[1].dealt = True
    log.deaths = [died(1, noticed_ns=1_000)]
    assert fate(log, 1, phase=0).outcome == NOT_SENT
    log.deaths = [died(1, noticed_ns=999)]
    assert [fate(log, 1, phase=0).outcome, fate(log, 4).outcome] == [CLIENT_FAULT] * 2


def test_a_worker_that_died_in_the_drain_of_a_phase_lost_of_both(log):
    log.phases[0].dealt = log.phases[1].dealt = True
    log.phases[0].end_ns = 1_500
    log.deaths = [died(1, noticed_ns=1_499)]
    assert [fate(log, 1, phase=0).outcome, fate(log, 4).outcome] == [CLIENT_FAULT] * 2


def test_shared_rows_are_lost_up_to_the_last_one_drawn(log):
    log.phases[1].drawn = 6
    log.deaths = [died(2)]
    assert [fate(log, request).outcome for request in range(4, 14)] == [CLIENT_FAULT] * 6 + [NOT_SENT] * 4
    assert fate(log, 4) == Fate(CLIENT_FAULT, "lost with worker 2: killed by signal 9", 2)


def test_what_was_sent_had_been_drawn_and_so_had_everything_before_it(log):
    log.deaths = [died(2)]
    assert [fate(log, request, seen_rows=3).outcome for request in (6, 7)] == [CLIENT_FAULT, NOT_SENT]


def test_of_several_dead_workers_nobody_knows_which_one_it_was(log):
    log.phases[1].drawn = 6
    log.deaths = [died(0), died(2)]
    words = "lost with one of the workers that died (0: killed by signal 9; 2: killed by signal 9)"
    assert fate(log, 4) == Fate(CLIENT_FAULT, words)


def test_a_worker_that_told_its_fault_itself_died_as_well(log):
    log.workers[1].fault = "no space left"
    log.phases[1].dealt = True
    assert fate(log, 4) == Fate(CLIENT_FAULT, "lost with worker 1: no space left", 1)


def test_nothing_is_lost_while_all_workers_live(log):
    log.phases[1].drawn = 10
    assert fate(log, 4).outcome == NOT_SENT


def test_a_row_that_the_plan_does_not_hold(log):
    log.deaths = [died(1)]
    log.phases[1].dealt = True
    assert fate(log, 5, composed=False) == Fate(NOT_SENT, "the prompt was not composed in time")


@pytest.mark.parametrize(
    ("by", "why", "words"),
    [
        ("user", "interrupted", "the run was interrupted"),
        ("failures", "60 of the last 100 failed.", "the run was given up: 60 of the last 100 failed"),
        ("trouble", None, "the run was given up: trouble"),
    ],
)
def test_a_run_that_was_stopped(log, by, why, words):
    log.stopped_by, log.stopped_why = by, why
    assert fate(log, 4) == Fate(NOT_SENT, words)
    assert fate(log, 0, phase=0).fault == unseen.NO_SLOT  # the warm-up had ended when the run was stopped


def test_a_stop_ends_every_phase_that_was_open(log):
    log.stopped_by = "user"
    log.phases[0].stop_ns = log.phases[1].stop_ns = (
        1_200  # one worker was still at the first of two seamless phases
    )
    assert [fate(log, 0, phase=0).fault, fate(log, 4).fault] == ["the run was interrupted"] * 2


def test_a_run_that_was_cut_off(log):
    log.end = "aborted"
    assert fate(log, 4).fault == "the run was cut off and nothing of it was recorded"
    assert fate(log, 0, phase=0).fault == unseen.NO_SLOT
    log.phases[0].stop_ns = 1_200  # it still sent after the next one had begun
    assert fate(log, 0, phase=0).fault == "the run was cut off and nothing of it was recorded"


def test_a_run_whose_workers_had_all_died(log):
    log.deaths = [died(worker) for worker in range(3)]
    assert fate(log, 4) == Fate(NOT_SENT, "every worker had died")


@pytest.mark.parametrize(
    ("dealt", "timed", "words"),
    [
        (False, True, "still waiting for a slot when the time was over"),
        (False, False, "not sent before the run ended"),
        (True, True, "not sent before the run ended"),
    ],
)
def test_a_run_that_ended_by_itself(log, dealt, timed, words):
    log.phases[1].dealt = dealt
    assert fate(log, 4, timed=timed) == Fate(NOT_SENT, words)


RUNS = st.fixed_dictionaries(
    {
        "planned": st.tuples(st.integers(0, 6), st.integers(0, 20)),
        "composed": st.integers(0, 26),
        "seen": st.sets(st.integers(0, 25)),
        "lost": st.sets(st.integers(0, 25)),
        "workers": st.integers(1, 4),
        "dead": st.sets(st.integers(0, 3)),
        "noticed_ns": st.integers(0, 3_000),
        "dealt": st.booleans(),
        "drawn": st.integers(0, 26),
        "stop": st.sampled_from([None, "user", "failures", "trouble"]),
        "turns": st.integers(1, 3),
    }
)


@settings(max_examples=150)
@given(told=RUNS)
def test_the_outcomes_add_up_to_what_was_planned(told, tmp_path_factory, make_run, wire):
    run = make_run(tmp_path_factory.mktemp("run"))
    warmup, measured = told["planned"]
    planned = warmup + measured
    phases = [
        PhaseLog(
            name=name, kind=name, first_row=first, planned=rows, start_ns=start_ns, stop_ns=0, end_ns=0,
            drawn=told["drawn"], dealt=told["dealt"],
        )
        for name, first, rows, start_ns in (
            ("warmup", 0, warmup, 100), ("measured", warmup, measured, 1_000),
        )
    ]  # fmt: skip
    composed = max(min(told["composed"], planned) - warmup, 0)
    run.plan(
        [("warmup", min(told["composed"], warmup)), ("measured", composed)],
        workers=told["workers"],
        turns=told["turns"],
        firsts=(0, warmup),
    )
    log = read_run(run.folder)
    log.phases, log.stopped_by = phases, told["stop"]
    log.deaths = [died(worker, told["noticed_ns"]) for worker in told["dead"] if worker < told["workers"]]
    write_run(run.folder, log)
    recorder = run.recorder()
    seen = {request for request in told["seen"] if request < planned}
    for request in sorted(seen):
        if request in told["lost"]:
            recorder.start(request, sent_ns=5)
        else:
            recorder.flight(request, [(6, wire.head + wire.token("a") + wire.finish())], sent_ns=5)
    run.decode()

    tables.build(run.folder)
    table = pl.read_parquet(run.folder / "requests.parquet")
    assert table["request"].to_list() == list(range(planned))
    assert table["phase"].to_list() == ["warmup"] * warmup + ["measured"] * measured
    for row in table.to_dicts():
        if row["request"] in seen:
            assert row["outcome"] == ("client-fault" if row["request"] in told["lost"] else "ok")
            assert row["sent_ns"] == 5
        else:
            assert row["outcome"] in ("not-sent", "client-fault")
            assert row["sent_ns"] is None
            assert row["fault"]
            assert row["outcome"] == "not-sent" or log.deaths
