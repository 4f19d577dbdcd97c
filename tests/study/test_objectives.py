"""Verdicts on objectives over several runs."""

from __future__ import annotations

import pytest

from loadstone.errors import Exit
from loadstone.report import MetricResult, SloVerdict
from loadstone.study.aggregate import spreads
from loadstone.study.objectives import code, verdicts


def one(verdict="PASS", limit=100.0, better="lower", metric="request_latency", stat="p99"):
    sign = "<" if better == "lower" else ">"
    return SloVerdict(
        objective=f"{metric}.{stat}{sign}{limit:g}ms",
        metric=metric,
        stat=stat,
        limit=limit,
        better=better,
        unit="ms",
        value=50.0,
        interval=None,
        verdict=verdict,
        finding="",
        more_requests=7,
    )


def over(*values):
    return spreads(
        [{"request_latency": MetricResult(unit="ms", better="lower", count=9, mean=v, p99=v)} for v in values]
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
    asked = one(limit=limit, better=better)
    [found] = verdicts([[asked]] * 3, over(*values))
    assert found.verdict == word
    assert found.interval.method == "Student t over runs"
    assert found.value == pytest.approx(sum(values) / 3)
    assert found.more_requests is None


def test_how_many_runs_missed_it_is_said():
    [found] = verdicts([[one("FAIL")], [one()], [one()]], over(101.0, 50.0, 50.0))
    assert found.verdict == "UNDECIDED"
    assert found.finding.endswith("and the limit lies within; 1 of 3 runs missed it. More runs would tell.")


def test_a_lone_run_speaks_for_itself():
    assert verdicts([[one("FAIL")]], over(50.0)) == (one("FAIL"),)
    assert verdicts([], {}) == ()


def test_a_run_without_a_value_leaves_it_undecided():
    [found] = verdicts([[one()], [one()], [one()]], over(50.0, 50.0, None))
    assert (found.verdict, found.finding) == ("UNDECIDED", "Not every run has a value; no run missed it.")


def test_each_verdict_has_its_code():
    assert code([[one("PASS"), one("FAIL")], [one("UNDECIDED")]]) == [
        Exit.DONE,
        Exit.SLO_MISSED,
        Exit.UNDECIDED,
    ]
