"""The tables that metrics look at: which requests are in them, of which phases, and what is known of every one."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from tests.conftest import ns

from loadstone.folder import PhaseLog
from loadstone.metrics import Tables, all_metrics
from loadstone.metrics import _tables as tables_module
from loadstone.stats import summarise


def phase(name, start, stop, end, kind="measured", **more):
    return PhaseLog(
        name=name, kind=kind, first_row=0, planned=1, start_ns=ns(start), stop_ns=ns(stop), end_ns=ns(end),
        **more,
    )  # fmt: skip


@pytest.fixture
def several(tables):
    """A run of several phases."""
    return lambda *rows, phases, **run: tables(*rows, phases=list(phases), **run)


LOW, HIGH = phase("low", 0, 400, 500), phase("high", 800, 1000, 1300)
WARM = phase("warm", -300, -100, -50, "warmup")


def test_measured_phases_are_looked_at_whatever_they_are_called(several, answer):
    rows = [answer(9, phase=name) for name in ("warm", "low", "cool", "high")]
    run = several(*rows, phases=[WARM, LOW, phase("cool", 500, 700, 750, "cooldown"), HIGH])
    assert run.requests["phase"].to_list() == ["low", "high"]
    assert [log.name for log in run.phases] == ["low", "high"]
    assert run.start_ns == ns(0)


def test_phases_by_name(frame, run_log, answer):
    rows = [answer(9, phase=name) for name in ("warm", "low", "high")]
    run = Tables.read(frame(*rows).lazy(), run_log(phases=[WARM, LOW, HIGH]), ["warm", "high"])
    assert run.requests["phase"].to_list() == ["warm", "high"]
    assert run.of_phases("high").column("request").to_list() == [rows[2]["request"]]
    assert [log.name for log in run.of_phases("high").phases] == ["high"]


def test_a_run_that_never_came_to_its_measurement(several, answer):
    run = several(answer(9, phase="warm"), phases=[WARM], rate=5)
    assert (len(run.requests), run.phases, run.start_ns, run.window_s) == (0, (), None, 0.0)
    assert run.has_rate  # what its measured phase was to be


@pytest.mark.parametrize("tokens", [1, 3, 1 << 17])
def test_chosen_requests_bring_their_own_tokens(several, answer, monkeypatch, tokens):
    monkeypatch.setattr(tables_module, "_READ_TOKENS", tokens)
    monkeypatch.setattr(tables_module, "_PART_TOKENS", tokens)
    kinds = [("warm", 0), ("low", 0), ("low", 1), ("warm", 1), ("low", 1), ("high", 0), ("high", 1)]
    rows = [answer(i, i + 1, phase=name, target=target) for i, (name, target) in enumerate(kinds)]
    run = several(*rows, phases=[WARM, LOW, HIGH])
    second = run.only((run.requests["target"] == 1).to_numpy())
    for found, expected in ((run, [1, 2, 4, 5, 6]), (second, [2, 4, 6]), (second.of_phases("high"), [6])):
        assert found.column("request").to_list() == [rows[i]["request"] for i in expected]
        parts = list(found.parts("request", "arrival_ns"))
        assert pl.concat([part for _, part in parts])["arrival_ns"].to_list() == [
            [ns(i), ns(i + 1)] for i in expected
        ]
        sizes = [len(part) for _, part in parts]
        assert [position for position, _ in parts] == (np.cumsum(sizes) - sizes).tolist()


def test_a_metric_of_some_requests_is_that_of_a_run_of_only_these(tables, answer):
    rows = [answer(10 + i, 20 + 3 * i, 25 + 3 * i, target=i % 2) for i in range(9)]
    run = tables(*rows)
    alone = tables(*rows[1::2])
    second = run.only((run.requests["target"] == 1).to_numpy())
    for name in ("inter_token_latency", "time_to_first_token", "client_lag"):
        found = [summarise(all_metrics()[name].result(part).values) for part in (second, alone)]
        assert found[0] == found[1]


def test_time_between_two_phases_is_in_no_rate_and_no_level(several, answer, mean, result):
    rows = [answer(at + 100, sent=at, done=at + 100, phase="low") for at in (0, 100, 200)]
    rows += [answer(at + 200, sent=at, done=at + 200, phase="high") for at in (1000, 1050)]
    run = several(*rows, phases=[LOW, phase("high", 1000, 1100, 1300)])
    assert run.window_s == pytest.approx(0.3 + 0.25)
    assert mean("request_throughput", run) == pytest.approx(5 / 0.55)
    assert mean("sent_rate", run) == pytest.approx((2 + 1) / (0.2 + 0.05))
    levels = summarise(result("concurrency", run).values)
    assert (levels.min, levels.max, levels.mean) == (1.0, 2.0, pytest.approx((0.3 + 0.4) / 0.55))


def test_phases_that_overlap_are_one_stretch(several, answer, mean):
    rows = [answer(500, sent=0, phase="low"), answer(600, sent=400, phase="high")]
    run = several(*rows, phases=[LOW, phase("high", 400, 500, 700, seamless=True)])
    assert run.stretches == (run,)
    assert mean("benchmark_duration", run) == pytest.approx(0.6)
    assert mean("concurrency", run) == pytest.approx((500 + 200) / 600)


def test_what_was_never_sent_waited_until_its_own_phase_stopped(several, answer, unsent):
    rows = [unsent(due=100, phase="low"), answer(850, due=800, phase="high"), unsent(due=900, phase="high")]
    run = several(*rows, phases=[LOW, HIGH])
    assert run.cut_off_ms("due_ns").tolist() == pytest.approx([300, np.nan, 100], nan_ok=True)


@pytest.mark.parametrize(
    ("load", "has_rate", "has_cap", "has_limit"),
    [
        ({}, False, False, False),
        ({"concurrency": 4}, False, False, False),
        ({"concurrency": 4, "prefill_concurrency": 2}, False, False, True),
        ({"request_rate": 5.0}, True, False, False),
        ({"request_rate": 5.0, "concurrency": 4}, True, True, True),
        ({"request_rate": 5.0, "prefill_concurrency": 4}, True, True, True),
        ({"request_rate": "inf"}, True, False, False),
        ({"request_rate_series": ((0.0, 1.0), (60.0, 20.0)), "duration_s": 60.0}, True, False, False),
        ({"user_centric_rate": 5.0, "users": 10}, True, False, False),
        ({"fixed_schedule": True}, True, False, False),
    ],
)
def test_which_loads_have_due_times_and_which_a_limit(load, has_rate, has_cap, has_limit, tables):
    run = tables(load=load)
    assert (run.has_rate, run.has_cap, run.has_limit) == (has_rate, has_cap, has_limit)


def test_due_times_are_known_where_every_phase_has_them(several):
    load = {"phases": ({"name": "low", "concurrency": 2}, {"name": "high", "request_rate": 5.0})}
    run = several(phases=[LOW, HIGH], load=load)
    assert [found.name for found in run.loads] == ["low", "high"]
    assert (run.has_rate, run.of_phases("high").has_rate, run.of_phases("low").has_rate) == (
        False,
        True,
        False,
    )


def test_a_turn_is_ready_when_it_is_due_and_the_turn_before_has_ended(tables, answer, unsent):
    def turn(number, conversation, **times):
        return {"conversation": conversation, "turn": number, **times}

    rows = [
        answer(100, due=0, **turn(0, 1)),
        answer(900, due=500, sent=501, **turn(0, 2)),
        answer(400, due=50, sent=101, **turn(1, 1)),  # due while the turn before was under way
        unsent(due=800, **turn(1, 2)),  # the turn before ended later
        answer(700, due=600, sent=601, **turn(2, 1)),  # due later than that
        unsent(due=950, **turn(2, 2)),  # the turn before was never sent
        unsent(**turn(3, 1)) | {"due_ns": None},  # its think time was not over
    ]
    ready = tables(*rows).ready_ns.to_list()
    assert ready == [ns(0), ns(500), ns(100), ns(900), ns(600), None, None]


def test_a_user_who_begins_in_the_middle_of_a_conversation_is_ready_when_due(tables, answer):
    rows = [answer(100 + 10 * turn, due=turn, sent=turn, conversation=1, turn=turn) for turn in (2, 3)]
    run = tables(*rows)
    assert run.opens.tolist() == [True, False]
    assert run.ready_ns.to_list() == [ns(2), ns(120)]
    second = run.only(np.array([False, True]))  # the turn before it is not among these
    assert (second.opens.tolist(), second.ready_ns.to_list()) == ([False], [None])


QUEUED = {"request_rate": 10.0, "duration_s": 1.0}


@pytest.mark.parametrize(
    ("load", "stop", "left"),
    [
        ({"concurrency": 2}, 1000, [50, 940, 1000, 1000]),
        ({"concurrency": 2, "drain_queue": True}, 1000, [50, 940, 1500, 1500]),
        ({"concurrency": 2, "drain_queue": True}, 990, [50, 940, 990, 990]),  # stopped before its time
        ({"prefill_concurrency": 2}, 1000, [50, 940, 1000, 1000]),
        ({}, 1000, [50, 940, 1500, 1000]),  # no turn follows another one after the stop
        ({}, 990, [50, 940, 1500, 990]),
    ],
)
def test_the_queue_is_left_when_sent_given_up_or_when_nothing_is_sent_any_more(
    load, stop, left, tables, answer, unsent
):
    rows = [
        answer(400, due=0, sent=50, conversation=1, turn=0),
        unsent(due=100, done_ns=ns(940), conversation=2, turn=0),  # it had waited for a connection
        unsent(due=200, conversation=3, turn=0),
        unsent(due=300, conversation=1, turn=1),
        unsent(conversation=1, turn=2) | {"due_ns": None},
    ]
    run = tables(*rows, load=QUEUED | load, phases=[phase("measured", 0, stop, 1500)])
    assert run.left_queue_ns.to_list() == [*map(ns, left), None]
    waited = [left[1] - 100, left[2] - 200, left[3] - 300]
    assert run.cut_off_ms("due_ns").tolist() == pytest.approx([np.nan, *waited, np.nan], nan_ok=True)


def test_what_the_client_lost_before_it_was_sent_is_neither_sent_nor_unsent_nor_never_due(
    tables, answer, unsent
):
    lost = answer(outcome="client-fault", due=300) | {"sent_ns": None}
    rows = [answer(50), answer(outcome="client-fault"), lost, lost | {"due_ns": None}, unsent()]
    rows.append(unsent() | {"due_ns": None})
    run = tables(*rows, rate=10)
    assert run.attempted.tolist() == [True, True, False, False, False, False]
    assert run.lost.tolist() == [False, False, True, True, False, False]
    assert run.unsent.tolist() == [False, False, False, False, True, False]
    assert run.never_due.tolist() == [False, False, False, False, False, True]
    assert np.isnan(run.cut_off_ms("due_ns")[2])  # nobody knows how long it would have waited
