from __future__ import annotations

import pytest

from loadstone.checks import Evidence
from loadstone.checks.steady import steady_state
from loadstone.metrics import all_metrics
from loadstone.summary import measure


@pytest.fixture
def judged(evidence):
    """What the check says of a run, metrics made."""

    def of(*rows, **run):
        found = evidence(*rows, **run)
        metrics = {
            name: measure(all_metrics()[name], found.tables) for name in ("offered_rate", "completed_rate")
        }
        return steady_state(Evidence(found.tables, metrics))

    return of


def loop(answer, *lasts_ms, slots=4):
    """A closed loop: rounds of `slots` requests that last so long."""
    rows, at = [], 0.0
    for lasts in lasts_ms:
        rows += [answer(at + lasts / 2, at + lasts, sent=at) for _ in range(slots)]
        at += lasts
    return rows


def test_a_load_that_stays_what_it_is(judged, answer):
    told = judged(*loop(answer, *[100.0] * 50), cap=4)
    assert (told.name, told.verdict) == ("steady_state", "VALID")
    assert told.value == pytest.approx(98, abs=3)


def test_latencies_that_drift(judged, answer):
    told = judged(*loop(answer, *(100.0 + 2 * number for number in range(50))), cap=4)
    assert told.verdict == "NOTE"
    assert "request_latency rose by" in told.finding


def test_a_run_too_short_for_a_steady_state(judged, answer):
    told = judged(*loop(answer, 100.0, 100.0, slots=20), cap=20)
    assert (told.verdict, told.value) == ("NOTE", None)
    assert told.finding.startswith("no steady state was reached: ")


def test_few_answers_do_not_tell(judged, answer):
    assert judged(*loop(answer, *[100.0] * 7), cap=4).finding == "too few answers to tell."


def test_a_load_that_is_meant_to_change(judged, answer):
    told = judged(*loop(answer, *[100.0] * 50), cap=4, load={"concurrency_ramp_s": 2.0})
    assert (told.verdict, told.finding) == ("VALID", "the load was meant to change with time.")


def test_a_ramp_of_its_own_that_takes_most_of_the_time(judged, answer):
    few = [answer(at + 50, at + 100, sent=at) for at in (100.0 * number for number in range(60))]
    many = [
        answer(at + 50, at + 100, sent=at)
        for at in (6000 + 100.0 * number for number in range(40))
        for _ in range(20)
    ]
    told = judged(*few, *many, rate=50)
    assert told.verdict == "NOTE"
    assert told.value == pytest.approx(40, abs=3)
