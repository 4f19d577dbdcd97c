"""Several phases: warm-ups and cooldowns that are in no number, one after the other or without a pause, each by itself."""

from __future__ import annotations

import signal

import polars as pl
import pytest
from tests.e2e.shapes import Recorded, peak, phases_file

from loadstone.errors import Exit

SHORT = "--streaming --isl 16 --osl 4 --extra-inputs ignore_eos:true"
LONGER = "--streaming --isl 16 --osl 20 --extra-inputs ignore_eos:true"
"""About 210 ms at 10 ms a step."""


@pytest.fixture(scope="module")
def steady(simulate):
    return simulate("--step-ms 10")


def span_ns(table):
    """From the first send to the end of the last answer."""
    return table["sent_ns"].min(), table["done_ns"].max()


# ---- warm-up and cooldown -------------------------------------------------------------------------------


def test_a_drained_warm_up_ends_before_the_measurement_begins(good, steady):
    run = good(f"--url {steady.url} {SHORT} --concurrency 3 --warmup-duration 0.5 --request-count 9")
    warm, measured = Recorded(run, "warmup"), Recorded(run, "measured")
    assert span_ns(warm.table)[1] < measured.log.start_ns <= span_ns(measured.table)[0]
    assert warm.log.end_ns <= measured.log.start_ns
    assert warm.table["sent_ns"].max() < warm.log.start_ns + 500_000_000
    assert set(warm.table["outcome"]) == {"ok-length"}, "all its answers are awaited"
    assert run.report.outcomes.warmup == {"ok-length": len(warm.table)}
    assert run.counts == {"ok-length": 9}
    assert (warm.facts.kind, warm.facts.handover, measured.facts.start_s) == ("warmup", "drained", 0.0)
    assert warm.facts.start_s < 0


def test_a_warm_up_by_conversations_goes_on_to_their_last_turns(good, engine):
    run = good(
        f"--url {engine.url} {SHORT} --concurrency 2 --conversation-turn-mean 2"
        " --num-warmup-sessions 3 --num-sessions 4"
    )
    assert run.report.outcomes.warmup == {"ok-length": 6}
    assert run.counts == {"ok-length": 8}
    conversations = run.table.group_by("phase", maintain_order=True).agg(pl.col("conversation").n_unique())
    assert conversations.rows() == [("warmup", 3), ("measured", 4)]


@pytest.fixture(scope="module")
def seamless(good, steady):
    """At four places 6 + 12 requests, so that two of every phase are under way when the next one begins."""
    return good(
        f"--url {steady.url} {LONGER} --concurrency 4 --warmup-request-count 6 --warmup-handover seamless"
        " --request-count 12 --cooldown-duration 0.4"
    )


def test_a_seamless_phase_begins_while_the_last_answers_come(seamless):
    warm, measured, cool = (Recorded(seamless, name) for name in ("warmup", "measured", "cooldown"))
    assert measured.log.start_ns < warm.log.end_ns
    assert span_ns(measured.table)[0] < span_ns(warm.table)[1]
    assert span_ns(cool.table)[0] < span_ns(measured.table)[1]
    handovers = [phase.handover for phase in seamless.report.phases]
    assert handovers == ["drained", "seamless", "seamless"]


def test_phases_that_overlap_share_the_cap(seamless):
    assert peak(seamless.table) == 4
    assert peak(Recorded(seamless, "measured").table) == 4


def test_what_is_not_measured_is_in_no_number(seamless):
    outcomes = seamless.report.outcomes
    assert outcomes.planned == outcomes.counts["ok-length"] == 12
    assert outcomes.warmup == {"ok-length": 6}
    cool = Recorded(seamless, "cooldown")
    assert outcomes.cooldown == dict(cool.table["outcome"].value_counts().rows())
    assert len(cool.table) >= 4
    assert seamless.report.metrics["request_latency"].count == 12
    assert sum(seamless.report.series.sent) == seamless.report.load.sent == 12
    assert cool.table["sent_ns"].max() < cool.log.start_ns + 400_000_000


# ---- several measured phases ----------------------------------------------------------------------------

RATES = {"low": 40, "middle": 80, "high": 160}


@pytest.fixture(scope="module")
def climb(good, engine, tmp_path_factory):
    """Three rates for half a second each after a warm-up; the last one follows without a pause."""
    phases = [
        {"name": "warm", "kind": "warmup", "request_count": 5, "request_rate": 100},
        *(
            {"name": name, "duration_s": 0.5, "request_rate": rate, "arrival_pattern": "constant",
             "handover": "seamless" if name == "high" else "drained"}
            for name, rate in RATES.items()
        ),
    ]  # fmt: skip
    config = phases_file(tmp_path_factory.mktemp("config") / "climb.toml", *phases)
    return good(f"--url {engine.url} --config {config} {SHORT} --workers 2")


def test_every_measured_phase_offers_its_own_rate(climb):
    for name, rate in RATES.items():
        phase = Recorded(climb, name)
        phase.holds_the_plan()
        assert phase.facts.offered == phase.facts.sent == phase.facts.planned == rate // 2
        assert phase.facts.counts == {"ok-length": rate // 2}
        assert phase.arrivals.rate == rate
        assert phase.facts.arrivals == f"constant {rate} requests/s"
        assert phase.log.stop_ns == min(phase.log.start_ns + 500_000_000, phase.log.end_ns)


def test_every_measured_phase_has_its_own_results(climb):
    for name in RATES:
        phase = Recorded(climb, name)
        latency_ms = (phase.table["last_ns"] - phase.table["sent_ns"]) / 1e6
        result = phase.facts.metrics["request_latency"]
        assert result.count == len(phase.table)
        assert result.mean == pytest.approx(latency_ms.mean(), rel=1e-9)


def test_the_phases_add_up_to_the_whole(climb):
    measured = [phase for phase in climb.report.phases if phase.kind == "measured"]
    assert [phase.name for phase in measured] == list(RATES)
    planned = sum(RATES.values()) // 2
    assert climb.report.outcomes.planned == sum(phase.planned for phase in measured) == planned
    assert climb.report.load.offered == climb.report.load.sent == planned
    assert sum(climb.report.series.offered) == sum(climb.report.series.completed) == planned
    assert climb.report.outcomes.warmup == {"ok-length": 5}
    assert climb.table["request"].n_unique() == len(climb.table) == planned + 5
    assert [stretch.name for stretch in climb.report.series.phases] == list(RATES)


def test_a_phase_that_follows_at_once_begins_when_the_rate_of_the_one_before_ends(climb):
    middle, high = Recorded(climb, "middle"), Recorded(climb, "high")
    assert high.log.start_ns == middle.log.start_ns + 500_000_000
    assert middle.log.start_ns > Recorded(climb, "low").log.end_ns


# ---- interrupted ----------------------------------------------------------------------------------------


@pytest.fixture
def interrupted(started, steady, tmp_path, run_of, wait_until):
    """Two long measured phases after a warm-up, stopped when the phase with a name has begun."""

    def run(name, warm_requests):
        phases = [
            {"name": "warm", "kind": "warmup", "request_count": warm_requests},
            {"name": "first", "request_count": 8},
            {"name": "second", "request_count": 4_000},
        ]
        config = phases_file(tmp_path / "phases.toml", *({"concurrency": 2, **phase} for phase in phases))
        process = started(
            f"profile --url {steady.url} --config {config} {SHORT} --artifact-dir run --ui plain"
        )
        number = 1 + [phase["name"] for phase in phases].index(name)
        for line in process.stderr:
            if line.startswith(f"{name} ({number} of 3)"):
                break
        process.send_signal(signal.SIGINT)
        code, out, _ = process.ended()
        assert code == Exit.INTERRUPTED
        assert out.startswith("STOPPED")
        return run_of(tmp_path / "run")

    return run


def test_an_interrupt_in_a_warm_up_measures_nothing(interrupted):
    run = interrupted("warm", 4_000)
    assert [phase.name for phase in run.log.phases] == ["warm"]
    assert (run.report.outcomes.planned, run.counts) == (0, {})
    assert set(run.report.outcomes.warmup) == {"ok-length"}
    assert len(run.table) == sum(run.report.outcomes.warmup.values()) < 4_000
    assert "The run ended in its warm-up; nothing was measured." in run.report.run.notices
    assert run.report.load.sent == 0
    assert run.report.load.bound_by is None


def test_an_interrupt_in_the_second_phase_keeps_the_first_whole(interrupted):
    run = interrupted("second", 2)
    first, second = Recorded(run, "first"), Recorded(run, "second")
    assert first.facts.counts == {"ok-length": 8}
    assert set(second.facts.counts) == {"ok-length"}
    assert 0 < second.facts.planned < 4_000
    assert run.report.outcomes.planned == 8 + second.facts.planned == run.counts["ok-length"]
    assert second.log.planned == len(second.table)
    assert run.report.outcomes.warmup == {"ok-length": 2}
    assert (run.log.end, run.log.stopped_by) == ("interrupted", "user")


def test_all_workers_begin_a_phase_that_follows_a_closed_loop_at_one_moment(good, steady, tmp_path):
    phases = [
        {"name": "closed", "request_count": 11, "concurrency": 4},
        {"name": "open", "request_rate": 100, "duration_s": 0.5, "handover": "seamless"},
    ]
    config = phases_file(tmp_path / "phases.toml", *phases)
    run = good(f"--url {steady.url} --config {config} {SHORT} --workers 2")
    phase = Recorded(run, "open")
    phase.holds_the_plan()
    assert (phase.table["due_ns"] < phase.log.stop_ns).all()
