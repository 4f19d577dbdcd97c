"""The numbers of phases, targets and models."""

from __future__ import annotations

import msgspec
import pytest

from loadstone.checks import Evidence
from loadstone.metrics import Tables, all_metrics
from loadstone.summary.groups import METRICS, models, phases, targets
from loadstone.summary.measure import measure

TIMED = {"request_latency_from_due", "time_to_first_token_from_due"}


def measured(tables):
    return {name: measure(one, tables) for name, one in all_metrics().items()}


@pytest.fixture
def told(frame, run_log):
    """The phases of a run with these rows; keywords go to `run_log`."""

    def of(*rows, **run):
        table, log = frame(*rows).lazy(), run_log(**{"planned": len(rows), **run})
        tables = Tables.read(table, log)
        return phases(table, Evidence(tables, measured(tables)))

    return of


def test_a_lone_phase_has_the_numbers_of_the_whole(told, answer, unsent):
    (found,) = told(answer(50, sent=0), answer(80, sent=10), unsent(due=20), rate=10, cap=1)
    assert (found.name, found.kind, found.handover) == ("measured", "measured", "drained")
    assert (found.start_s, found.stop_s, found.end_s) == (0.0, 1.0, 1.0)
    assert (found.planned, found.offered, found.sent) == (3, 3, 2)
    assert found.counts == {"ok-length": 2, "not-sent": 1}
    assert set(found.metrics) == set(METRICS)
    assert found.metrics["request_latency"].mean == 60.0


def test_without_due_times_nothing_counts_from_them(told, answer):
    (found,) = told(answer(50, sent=0))
    assert set(found.metrics) == set(METRICS) - TIMED


def test_every_phase_has_its_own_numbers_whatever_its_kind(told, answer, phase_log):
    load = {"phases": (
        {"name": "warm", "kind": "warmup", "request_count": 1}, {"name": "a", "concurrency": 2},
        {"name": "b", "request_rate": 4.0, "handover": "seamless"}, {"name": "cool", "kind": "cooldown", "duration_s": 1.0},
    )}  # fmt: skip
    logs = [
        phase_log("warm", -500, -200, -100, kind="warmup"), phase_log("a", 0, 1000, 1200),
        phase_log("b", 1000, 2000, seamless=True), phase_log("cool", 2000, 3000, kind="cooldown"),
    ]  # fmt: skip
    rows = [
        answer(-100, sent=-300, phase="warm"),
        answer(50, sent=0, phase="a"),
        answer(1100, sent=1000, phase="b"),
        answer(1300, sent=1100, phase="b"),
        answer(2600, sent=2200, phase="cool", outcome="reset"),
    ]
    found = told(*rows, phases=logs, load=load)
    assert [(one.name, one.kind, one.handover) for one in found] == [
        ("warm", "warmup", "drained"), ("a", "measured", "drained"), ("b", "measured", "seamless"),
        ("cool", "cooldown", "drained"),
    ]  # fmt: skip
    assert [(one.start_s, one.stop_s, one.end_s) for one in found] == [
        (-0.5, -0.2, -0.1), (0.0, 1.0, 1.2), (1.0, 2.0, 2.0), (2.0, 3.0, 3.0)
    ]  # fmt: skip
    assert [one.metrics["request_latency"].mean for one in found] == [200.0, 50.0, 150.0, None]
    assert [one.counts for one in found] == [
        {"ok-length": 1},
        {"ok-length": 1},
        {"ok-length": 2},
        {"reset": 1},
    ]
    assert [set(one.metrics) >= TIMED for one in found] == [False, False, True, False]
    assert found[2].arrivals == "poisson 4 requests/s, unconditioned"


def test_every_phase_has_its_own_account(told, answer, unsent, phase_log):
    """One slot, answers of 200 ms: one phase offers 2 requests/s, the next 10, of which half are left in the queue."""
    load = {"phases": (
        {"name": "warm", "kind": "warmup", "request_rate": 4.0, "request_count": 2},
        {"name": "low", "request_rate": 2.0, "concurrency": 1}, {"name": "high", "request_rate": 10.0, "concurrency": 1},
        {"name": "loop", "concurrency": 1},
    )}  # fmt: skip
    logs = [
        phase_log("warm", -2000, -1000, kind="warmup"), phase_log("low", 0, 20_000),
        phase_log("high", 20_000, 26_000), phase_log("loop", 26_000, 27_000),
    ]  # fmt: skip
    rows = [
        *(answer(at + 200, sent=at, phase="warm") for at in (-2000, -1750)),
        *(answer(at + 200, sent=at, phase="low") for at in range(0, 20_000, 500)),
        *(answer(20_200 + 200 * i, due=20_000 + 100 * i, sent=20_000 + 200 * i, phase="high") for i in range(30)),
        *(unsent(due=23_000 + 100 * i, phase="high") for i in range(30)),
        *(answer(26_200 + 200 * i, sent=26_000 + 200 * i, phase="loop") for i in range(3)),
    ]  # fmt: skip
    found = told(*rows, phases=logs, load=load)
    assert [(one.offered, one.sent, one.not_sent) for one in found] == [
        (2, 2, 0),
        (40, 40, 0),
        (60, 30, 30),
        (3, 3, 0),
    ]
    assert [one.offered_rate for one in found] == [4.0, 2.0, 10.0, None]
    assert [one.completed_rate for one in found] == [4.0, 2.0, 5.0, 5.0]
    assert [one.queued_most for one in found] == [0, 0, 30, None]
    assert [one.saturated for one in found] == [None, False, True, None]
    from_due = [one.metrics.get("request_latency_from_due") for one in found]
    assert [one and one.with_censored_at_least for one in from_due] == [False, False, True, None]


def test_a_run_without_a_phase_has_none(told):
    assert told(phases=[]) == ()


def test_where_nothing_was_measured_seconds_count_from_the_first_phase(told, answer, phase_log):
    load = {"warmup_request_count": 1}
    (found,) = told(
        answer(50, phase="warmup"), phases=[phase_log("warmup", 20, 90, kind="warmup")], load=load
    )
    assert (found.start_s, found.stop_s, found.planned) == (0.0, 0.07, 1)


def endpoint(run_log, **changes):
    config = run_log().config
    config["endpoint"].update(changes)
    return config


def test_several_servers_and_models_have_a_row_each(tables, answer, run_log):
    config = endpoint(run_log, url=["http://a", "http://b"], model="large,small")
    rows = [
        answer(50, target=0, model=0),
        answer(150, target=1, model=0),
        answer(250, target=1, model=1, outcome="reset"),
        answer(350, target=1, model=1),
        answer(outcome="not-sent", target=None, model=0),
    ]
    found = tables(*rows, config=config)
    evidence = Evidence(found, measured(found))
    assert [(one.name, one.planned, one.counts) for one in targets(evidence)] == [
        ("http://a", 1, {"ok-length": 1}),
        ("http://b", 3, {"ok-length": 2, "reset": 1}),
    ]
    assert [one.metrics["request_latency"].mean for one in targets(evidence)] == [50.0, 250.0]
    assert [one.metrics["error_rate"].mean for one in targets(evidence)] == [0.0, pytest.approx(100 / 3)]
    assert [(one.name, one.planned) for one in models(evidence)] == [("large", 3), ("small", 2)]


def test_rates_of_servers_and_models_add_up_to_those_of_the_whole(tables, answer, run_log, phase_log):
    """Two phases of 0.4 s and 0.1 s. One server answers in a tenth of the time, and in the first phase alone."""
    config = endpoint(run_log, url=["http://a", "http://b"], model="large,small")
    config["load"]["phases"] = [{"name": "x", "concurrency": 1}, {"name": "y", "concurrency": 1}]
    rows = [
        answer(30, 40, sent=0, phase="x", target=0, model=0),
        answer(300, 390, 400, sent=0, phase="x", target=1, model=1),
        answer(1050, 1080, 1090, 1095, 1100, sent=1000, phase="y", target=1, model=0),
    ]
    found = tables(*rows, config=config, phases=[phase_log("x", 0, 400), phase_log("y", 1000, 1100)])
    throughput = ("output_token_throughput", "request_throughput")
    evidence = Evidence(found, measured(found))
    for groups in (targets(evidence), models(evidence)):
        assert [sum(one.metrics[name].mean for one in groups) for name in throughput] == pytest.approx(
            [10 / 0.5, 3 / 0.5]
        )
    assert [one.metrics["output_token_throughput"].mean for one in targets(evidence)] == [4.0, 16.0]
    assert [one.metrics["request_throughput"].mean for one in models(evidence)] == [4.0, 2.0]


def test_one_server_and_one_model_are_the_whole(tables, answer, run_log):
    found = tables(answer(50, target=0, model=0), config=endpoint(run_log, url="http://a", model="m"))
    evidence = Evidence(found, measured(found))
    assert targets(evidence) == models(evidence) == ()


def test_a_server_that_got_nothing_has_a_row(tables, answer, run_log):
    found = tables(answer(50, target=0, model=0), config=endpoint(run_log, url=["http://a", "http://b"]))
    idle = targets(Evidence(found, measured(found)))[1]
    assert (idle.planned, idle.counts) == (0, {})
    assert all(result.reason for result in idle.metrics.values())
    assert msgspec.json.decode(msgspec.json.encode(idle))["name"] == "http://b"
