"""Verdicts on objectives over several runs."""

from __future__ import annotations

import pytest

from loadstone.errors import Exit
from loadstone.report import SloVerdict
from loadstone.study.objectives import code, verdicts


def one(
    verdict="PASS", value=50.0, limit=100.0, better="lower", metric="request_latency", stat="p99", **more
):
    sign = "<" if better == "lower" else ">"
    return SloVerdict(
        objective=f"{metric}.{stat}{sign}{limit:g}ms",
        metric=metric,
        stat=stat,
        limit=limit,
        better=better,
        unit="ms",
        value=value,
        interval=None,
        verdict=verdict,
        finding="",
        more_requests=7,
        **more,
    )


@pytest.mark.parametrize(
    ("values", "limit", "better", "word"),
    [
        ((50.0, 51.0, 49.0), 100, "lower", "PASS"),
        ((150.0, 151.0, 149.0), 100, "lower", "FAIL"),
        ((99.0, 101.0, 100.0), 100, "lower", "UNDECIDED"),
        ((150.0, 151.0, 149.0), 100, "higher", "PASS"),
        ((50.0, 51.0, 49.0), 100, "higher", "FAIL"),
    ],
)
def test_the_interval_over_runs_is_held_against_the_limit(values, limit, better, word):
    [found] = verdicts([[one(value=value, limit=limit, better=better)] for value in values])
    assert found.verdict == word
    assert found.interval.method == "Student t over runs"
    assert found.value == pytest.approx(sum(values) / 3)
    assert found.more_requests is None


def test_how_many_runs_missed_it_is_said():
    [found] = verdicts([[one("FAIL", 101.0)], [one()], [one()]])
    assert found.verdict == "UNDECIDED"
    assert found.finding.endswith("and the limit lies within; 1 of 3 runs missed it. More runs would tell.")


def test_a_lone_run_speaks_for_itself():
    assert verdicts([[one("FAIL")]]) == (one("FAIL"),)
    assert verdicts([]) == ()


def test_a_run_without_a_value_leaves_it_undecided():
    [found] = verdicts([[one()], [one()], [one(value=None)]])
    assert (found.verdict, found.finding) == ("UNDECIDED", "Not every run has a value; no run missed it.")


def test_none_is_met_that_a_run_has_missed():
    """As where the requests that were cut off decided, of which the mean over runs knows nothing."""
    [found] = verdicts([[one("FAIL", 50.0)], [one(value=51.0)], [one(value=49.0)]])
    assert found.verdict == "UNDECIDED"
    assert found.finding.endswith("all within the limit, but 1 of 3 runs missed it: see why it did.")


def test_one_endless_run_makes_the_mean_endless():
    [found] = verdicts([[one("FAIL", None, infinite=True)], [one()], [one()]])
    assert (found.verdict, found.value, found.infinite) == ("FAIL", None, True)
    assert found.finding == "It is infinite in 1 of 3 runs; 1 of 3 runs missed it."


def test_each_verdict_has_its_code():
    assert code([[one("PASS"), one("FAIL")], [one("UNDECIDED")]]) == [
        Exit.DONE,
        Exit.SLO_MISSED,
        Exit.UNDECIDED,
    ]
