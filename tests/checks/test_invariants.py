"""Sums that hold in every run: where one does not, the certificate says which."""

from __future__ import annotations

import pytest
from tests.conftest import T0_NS

from loadstone.checks import Evidence, certify
from loadstone.checks.invariants import RULES, invariants
from loadstone.metrics import all_metrics
from loadstone.summary.measure import measure


@pytest.fixture
def found(tables):
    """The check, of a run with these rows."""
    return lambda *rows, **run: invariants(Evidence(tables(*rows, **run), {}))


@pytest.fixture
def sound(answer, unsent):
    """One request of each kind."""
    return [
        answer(50, 60, 80),
        answer(outcome="http-error", done=20),
        answer(30, outcome="cut", done=40),
        unsent(due=5),
        unsent() | {"due_ns": None},
        answer(outcome="client-fault", done=None) | {"sent_ns": None, "done_ns": None},
    ]


def test_every_sum_of_a_sound_run_holds(found, sound):
    check = found(*sound)
    assert (check.verdict, check.value) == ("VALID", 0.0)
    assert all(rule in check.finding for rule in RULES)


@pytest.mark.parametrize(
    ("changes", "rule"),
    [
        ({"first_ns": T0_NS, "arrival_ns": [T0_NS, T0_NS + 80_000_000]}, "0 < TTFT <= latency"),
        ({"last_ns": T0_NS + 40_000_000}, "0 < TTFT <= latency"),
        ({"done_ns": T0_NS + 79_999_999}, "0 < TTFT <= latency"),
        ({"last_ns": T0_NS + 80_000_001, "done_ns": T0_NS + 80_000_001}, "TTFT + gaps = latency"),
        ({"first_ns": T0_NS + 50_000_001}, "TTFT + gaps = latency"),
        ({"outcome": "lucky"}, "outcomes sum to planned"),
    ],
)
def test_one_ns_is_enough_to_break_one(changes, rule, found, sound):
    broken = sound[0] | changes
    check = found(broken, *sound[1:])
    assert check.verdict == "INVALID"
    assert f"{rule}, for 1 request" in check.finding
    assert check.advice


def test_a_planned_request_without_a_row_is_missed(found, sound):
    assert "outcomes sum to planned, for 2 requests." in found(*sound, planned=8).finding


def test_choices_have_gaps_side_by_side(found, answer):
    row = answer(10, 12, 30, 32, choices=2) | {"chunk_choice": [0, 1, 0, 1]}
    assert found(row).verdict == "VALID"


def test_it_is_the_first_thing_a_certificate_says(tables, answer):
    run = tables(answer(50, 60) | {"first_ns": T0_NS + 1}, planned=1)
    evidence = Evidence(run, {name: measure(one, run) for name, one in all_metrics().items()})
    certificate = certify(evidence)
    assert certificate.verdict == "INVALID"
    assert certificate.headline == "does not hold: TTFT + gaps = latency, for 1 request."
