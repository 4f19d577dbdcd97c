from __future__ import annotations

import numpy as np
import pytest
from bench.certificate import FALSE_ALARMS_PERCENT, POWER_PERCENT, RUNS, page, rates
from bench.certificate.defects import CASES, EXACT
from bench.certificate.runs import REQUESTS_A_RUN, START_NS, closed_loop, evidence, open_loop, read_late

from loadstone.checks import CHECKS, certify


def test_a_good_run_is_valid_with_all_checks_together():
    for seed in range(3):
        certificate = certify(evidence(open_loop(np.random.default_rng(seed))))
        assert certificate.verdict == "VALID", certificate.headline


def test_a_closed_loop_never_has_more_in_flight_than_slots():
    run = closed_loop(np.random.default_rng(1), 8)
    moves = [(at, 1) for at in run.sent] + [(times[-1], -1) for times in run.arrivals]
    level = np.cumsum([step for _, step in sorted(moves)])
    assert (level.max(), len(run.sent)) == (8, REQUESTS_A_RUN)


def test_a_late_reader_merges_what_waits_together():
    run = open_loop(np.random.default_rng(1), rate=10, requests=1)
    run.arrivals = [START_NS + np.array([10, 20, 30, 40])]
    read_late(run, [np.array([15, 5, 1, 2])])
    assert (run.arrivals[0] - START_NS).tolist() == [20, 20, 30, 40]
    assert (run.reads[0] - START_NS).tolist() == [25, 25, 31, 42]


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_check_finds_its_defect_and_lets_good_runs_be(case):
    found = rates(case, 5)
    assert found.power >= 60
    assert found.false_alarms <= 40
    assert found.finding.endswith(".")


def test_every_check_is_measured_or_said_to_be_exact():
    assert {case.name for case in CASES} | set(EXACT) == {check.__name__ for check in CHECKS}


def test_the_kept_rates_are_of_the_whole_measurement_and_hold_the_bars():
    kept = page.kept()
    assert [one.check for one in kept] == [case.name for case in CASES]
    assert [one.defect for one in kept] == [case.defect for case in CASES]
    assert {one.runs for one in kept} == {RUNS}
    assert [one.check for one in kept if one.false_alarms > FALSE_ALARMS_PERCENT] == []
    assert [one.check for one in kept if one.power < POWER_PERCENT] == []
