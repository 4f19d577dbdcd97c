"""The measured phases over time: counts and levels in bins, the queue, and medians from due times."""

from __future__ import annotations

import pytest

from loadstone.summary.series import _step_s, series


def test_counts_and_levels_in_bins_of_a_second(tables, answer, unsent):
    rows = [answer(1500, sent=500, due=400), answer(2500, sent=1500), answer(900, sent=600, outcome="reset")]
    found = series(tables(*rows, unsent(due=1200)))
    assert found.step_s == 1.0
    assert found.offered == (2, 2, 0)
    assert found.sent == (2, 1, 0)
    assert found.completed == (0, 1, 1)
    assert found.in_flight == pytest.approx((0.8, 1.0, 0.5))


def test_a_closed_loop_has_no_queue(tables, answer):
    found = series(tables(answer(1500, sent=500)))
    assert (found.queued, found.latency_from_due_p50, found.ttft_from_due_p50) == (None, None, None)


def test_the_queue_holds_what_is_due_until_it_is_sent_or_its_phase_stops(tables, answer, unsent):
    rows = [
        answer(1900, due=0, sent=500),  # half a second in the first bin
        answer(2500, due=750, sent=1250),  # a quarter in each of two
        unsent(due=1000),  # until the stop, at 2 s
        unsent(due=2000),  # at the very stop
        answer(sent=None, due=500, done=1500, outcome="connect-refused"),  # given up after a second
    ]
    found = series(tables(*rows, rate=10, cap=2, end_ms=2000))
    assert found.queued == pytest.approx((0.5 + 0.25 + 0.5, 0.25 + 1.0 + 0.5, 0.0))
    assert found.offered == (3, 1, 1)


def test_a_queue_that_is_drained_holds_what_is_due_until_the_end(tables, answer, unsent, phase_log):
    """Stopped at 1 s, drained for a grace of 2 s: what was still not sent then has waited until 3 s."""
    rows = [answer(500, due=0, sent=0), unsent(due=500), unsent(due=900)]
    log = phase_log("measured", 0, 1000, end_ms=3000, planned=3)
    load = {"duration_s": 1.0, "grace_s": 2.0, "drain_queue": True}
    drained = tables(*rows, phases=[log], rate=10, cap=1, load=load)
    assert series(drained).queued == pytest.approx((0.6, 2.0, 2.0, 0.0))
    stopped = tables(*rows, phases=[log], rate=10, cap=1, load=load | {"drain_queue": False})
    assert series(stopped).queued == pytest.approx((0.6, 0.0))


def test_medians_count_from_due_and_belong_to_the_bin_of_the_due_time(tables, answer):
    rows = [
        answer(300, 400, due=100, sent=200),
        answer(500, 900, due=200, sent=250),
        answer(500, 1900, due=300, sent=400),
        answer(2100, 2200, due=1100, sent=2000),
    ]
    found = series(tables(*rows, rate=10))
    assert found.latency_from_due_p50 == (700.0, 1100.0, None)
    assert found.ttft_from_due_p50 == (200.0, 1000.0, None)


def test_what_was_never_sent_is_known_to_have_waited(tables, answer, unsent):
    answered = [answer(200, due=100, sent=110), *(answer(1400 + i, due=1100, sent=1200) for i in range(3))]
    found = series(tables(*answered, unsent(due=1050), rate=10, cap=1, end_ms=1900))
    assert found.latency_from_due_p50 == (100.0, 301.0)


def test_where_half_of_a_bin_was_left_waiting_its_median_is_not_told(tables, answer, unsent):
    """Though who came shortly before the stop had waited for less than any answer took, and would count for nothing."""
    answered = [answer(1400 + i, due=1100, sent=1200) for i in range(3)]
    late = [unsent(due=1800), unsent(due=1850)]
    found = series(tables(*answered, *late, rate=10, cap=1, end_ms=1900))
    assert found.latency_from_due_p50 == (None, 301.0)
    found = series(tables(*answered, *late, unsent(due=1890), rate=10, cap=1, end_ms=1900))
    assert found.latency_from_due_p50 == (None, None)


def test_what_was_cancelled_as_asked_hides_no_median(tables, answer):
    cancelled = [answer(due=100, sent=100, done=110, outcome="cancelled-as-planned") for _ in range(3)]
    assert series(tables(answer(200, due=100), *cancelled, rate=10)).latency_from_due_p50 == (100.0,)


def test_a_failure_is_in_no_median(tables, answer):
    rows = [answer(200, due=100, sent=110), *(answer(120, due=100, outcome="reset") for _ in range(5))]
    assert series(tables(*rows, rate=10)).latency_from_due_p50 == (100.0,)


def test_several_phases_are_counted_from_the_start_of_the_first(tables, answer, phase_log):
    rest = {"name": "rest", "kind": "cooldown", "duration_s": 1.0}
    logs = [
        phase_log("low", 1000, 2000), phase_log("high", 3000, 5000), phase_log("rest", 5000, 6000, kind="cooldown")
    ]  # fmt: skip
    rows = [
        answer(1500, sent=1400, phase="low"),
        answer(3500, sent=3400, phase="high"),
        answer(5500, sent=5400, phase="rest"),
    ]
    found = series(tables(*rows, phases=logs, load={"phases": ({"name": "low"}, {"name": "high"}, rest)}))
    assert found.sent == (1, 0, 1)
    assert [(one.name, one.start_s, one.stop_s) for one in found.phases] == [("low", 0, 1), ("high", 2, 4)]


def test_where_only_some_phases_have_due_times_the_queue_is_theirs(tables, answer, phase_log):
    config = {"phases": ({"name": "closed", "concurrency": 1}, {"name": "open", "request_rate": 5.0})}
    logs = [phase_log("closed", 0, 1000), phase_log("open", 1000, 2000)]
    rows = [
        answer(900, due=0, sent=500, phase="closed"),
        answer(1900, due=1000, sent=1500, phase="open"),
    ]
    found = series(tables(*rows, phases=logs, load=config))
    assert found.queued == pytest.approx((0.0, 0.5))
    assert found.latency_from_due_p50 is None


def test_long_runs_have_coarser_bins(tables, answer):
    found = series(tables(answer(1_250_000, sent=0)))
    assert (found.step_s, len(found.sent)) == (5.0, 251)
    assert found.in_flight[:2] == (1.0, 1.0)


@pytest.mark.parametrize(
    ("last_s", "step_s"), [(0, 1), (599, 1), (600, 2), (3600, 10), (3_000_000, 7200), (10_000_000, 18000)]
)
def test_there_are_at_most_600_bins(last_s, step_s):
    assert _step_s(last_s) == step_s
    assert last_s // step_s + 1 <= 600


def test_nothing_sent_has_no_bins(tables, unsent, run_log):
    assert series(tables(unsent())).sent == ()
    assert series(tables(phases=[])).sent == ()
