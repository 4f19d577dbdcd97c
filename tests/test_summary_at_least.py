"""Where percentiles with the requests cut off are lower bounds."""

from __future__ import annotations

import pytest

from loadstone.checks import Evidence
from loadstone.metrics import all_metrics
from loadstone.summary.at_least import behind, marked, saturated
from loadstone.summary.measure import measure

FROM_DUE = {
    "request_latency_from_due", "time_to_first_token_from_due", "time_to_first_output_token_from_due", "queue_wait"
}  # fmt: skip
FROM_SENT = {"request_latency", "time_to_first_token", "time_to_first_output_token"}


@pytest.fixture
def lower_bounds(tables):
    """The metrics whose curves are lower bounds, in a run with these rows; keywords go to `run_log`."""

    def of(*rows, **run):
        found = tables(*rows, **run)
        metrics = {name: measure(one, found) for name, one in all_metrics().items()}
        assert not any(metric.with_censored_at_least for metric in metrics.values())
        late = behind(found, saturated(Evidence(found, metrics)))
        return {name for name, one in marked(metrics, found, late).items() if one.with_censored_at_least}

    return of


def capped(answer, *, sent):
    """A cap of one slot: an arrival every 100 ms, an answer every 200 ms."""
    return [answer(200 * (i + 1), due=100 * i, sent=200 * i) for i in range(sent)]


def test_what_counts_from_due_is_a_lower_bound_where_a_cap_made_more_and_more_wait(
    lower_bounds, answer, unsent
):
    rows = [*capped(answer, sent=29), answer(due=2900, sent=5800, done=6000, outcome="cut")]
    never = [unsent(due=3000 + 100 * i) for i in range(30)]
    assert lower_bounds(*rows, *never, rate=10, cap=1, end_ms=6000) == FROM_DUE


def test_a_queue_in_the_server_makes_waits_from_sent_lower_bounds_too(lower_bounds, answer):
    """Without a limit: an arrival every 100 ms, an answer every 200 ms, and what had not ended after 6 s is cut off."""
    rows = [answer(200 * (i + 1), sent=100 * i) for i in range(30)]
    cut = [answer(sent=3000 + 100 * i, done=6000, outcome="cut") for i in range(30)]
    assert lower_bounds(*rows, *cut, rate=10, end_ms=6000) == FROM_DUE - {"queue_wait"} | FROM_SENT


def test_a_queue_that_is_drained_is_known_to_its_end(lower_bounds, answer):
    load = {"duration_s": 6.0, "drain_queue": True}
    assert lower_bounds(*capped(answer, sent=60), rate=10, cap=1, end_ms=6000, load=load) == set()


def test_where_nobody_fell_behind_the_end_of_a_run_cuts_off_requests_like_others(lower_bounds, answer):
    rows = [answer(100 * i + 50, sent=100 * i) for i in range(59)]
    assert lower_bounds(*rows, answer(sent=5900, done=6000, outcome="cut"), rate=10, end_ms=6000) == set()


def test_what_was_cancelled_as_asked_would_have_gone_on_like_others(lower_bounds, answer):
    rows = capped(answer, sent=60)
    rows[40] |= {"outcome": "cancelled-as-planned"}
    assert lower_bounds(*rows, rate=10, cap=1, end_ms=6000) == set()


def test_in_a_closed_loop_no_queue_grows(lower_bounds, answer):
    rows = [answer(200 * (i + 1), sent=200 * i) for i in range(30)]
    assert lower_bounds(*rows, answer(sent=6000, done=6100, outcome="cut"), cap=1, end_ms=6100) == set()


def test_a_phase_is_behind_that_was_saturated_or_whose_queue_was_growing(tables, answer, unsent, phase_log):
    load = {"phases": [{"name": name, "request_rate": 10.0, "concurrency": 1} for name in ("low", "high")]}
    rows = [
        answer(100, sent=0, phase="low"),
        answer(1100, sent=1000, phase="high"),
        *(unsent(due=1700 + i, phase="high") for i in range(9)),
    ]
    found = tables(*rows, phases=[phase_log("low", 0, 1000), phase_log("high", 1000, 2000)], load=load)
    assert behind(found, ()) == ("high",)
    assert behind(found, {"low"}) == ("low", "high")
    assert behind(found.of_phases("low"), ()) == ()


@pytest.fixture
def without_mean(tables):
    """The metrics whose mean has an interval until it is seen that waits grew."""

    def of(*rows, **run):
        found = tables(*rows, **run)
        metrics = {name: measure(one, found) for name, one in all_metrics().items()}
        late = behind(found, saturated(Evidence(found, metrics)))
        told = marked(metrics, found, late)
        return {
            name
            for name, one in told.items()
            if "mean" in one.intervals and "waits grew" in (one.intervals["mean"].reason or "")
        }

    return of


def test_a_wait_that_grows_has_no_mean_to_be_near_to(without_mean, answer, unsent):
    rows = capped(answer, sent=30)
    never = [unsent(due=3000 + 100 * i) for i in range(30)]
    assert without_mean(*rows, *never, rate=10, cap=1, end_ms=6000) == FROM_DUE


def test_a_wait_that_does_not_grow_has_one(without_mean, answer):
    rows = [answer(100 * i + 50, sent=100 * i) for i in range(60)]
    assert without_mean(*rows, rate=10, end_ms=6000) == set()
