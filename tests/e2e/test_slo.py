"""Objectives by the command as a person types it: verdicts, exit codes, junit.xml, and the end of a load that has missed one.

On the virtual clock, where no busy machine makes a run INVALID; the end of a real load over sockets too.
"""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from loadstone.errors import Exit

VIRTUAL = "--url sim:step_ms=2 --virtual --streaming --extra-inputs ignore_eos:true --isl 64 --osl 8 --ui none --random-seed 1"
LOOP = f"{VIRTUAL} --concurrency 4"


def words(run):
    return [one.verdict for one in run.report.slo]


@pytest.fixture(scope="module")
def judged(profile):
    """A run of 1,000 requests with a verdict of each kind."""
    return profile(f'{LOOP} --request-count 1000 --slo "e2e.p99<1s,e2e.p50<1ms" --slo e2e.p99_9<1s,e2e<1s')


def test_verdicts_stand_in_report_summary_and_exit_code(judged):
    assert words(judged) == ["PASS", "FAIL", "UNDECIDED"]
    assert judged.code == Exit.SLO_MISSED
    lines = [line for line in judged.out.splitlines() if line.startswith(("PASS", "FAIL", "UNDECIDED"))]
    assert [line.split()[0] for line in lines] == words(judged)
    assert "request latency p99 < 1,000 ms" in lines[0]


def test_what_is_about_each_request_is_goodput(judged):
    assert judged.report.config["slo"]["goodput"] == {"request_latency": 1000.0}
    assert judged.number("goodput_attainment") == 100


def test_junit_has_them_too(judged):
    suite = ElementTree.parse(judged.path / "junit.xml").getroot()
    cases = list(suite.iter("testcase"))
    assert [case.attrib["name"] for case in cases[1:]] == [one.objective for one in judged.report.slo]
    assert (suite.attrib["failures"], suite.attrib["errors"]) == ("1", "1")
    assert judged.report.run.files["junit"] == "junit.xml"


def test_a_saved_run_gives_the_same_code(judged, loadstone):
    before = (judged.path / "report.json").read_bytes()
    assert loadstone("report", str(judged.path)).code == Exit.SLO_MISSED
    assert (judged.path / "report.json").read_bytes() == before


@pytest.mark.parametrize(
    ("slo", "code"),
    [("e2e.p90<1s", Exit.DONE), ("e2e.p99_9<1s", Exit.UNDECIDED), ("e2e.p90<1ms", Exit.SLO_MISSED)],
)
def test_a_saved_run_is_judged_by_others_and_stays_as_it_is(judged, loadstone, slo, code):
    before = {path: path.read_bytes() for path in judged.path.iterdir() if path.is_file()}
    done = loadstone("report", str(judged.path), "--slo", slo)
    assert done.code == code
    assert "request latency p9" in done.out
    assert {path: path.read_bytes() for path in judged.path.iterdir() if path.is_file()} == before


def test_a_saved_run_is_not_judged_by_what_it_cannot_know(judged, loadstone):
    done = loadstone("report", str(judged.path), "--slo", "request_latency_from_due.p99<1s")
    assert done.code == Exit.USAGE
    assert "needs due times" in done.err


def test_objectives_of_each_request_alone_have_no_verdict_and_that_is_said(profile):
    run = profile(f"{LOOP} --request-count 50 --slo e2e<1ms")
    assert (run.code, words(run)) == (Exit.DONE, [])
    assert not (run.path / "junit.xml").exists()
    assert any("goodput_attainment>99%" in notice for notice in run.report.run.notices)


def test_a_load_ends_when_an_objective_is_missed_for_certain(profile):
    run = profile(f"{LOOP} --request-count 5000 --slo ttft.p99<1ms --slo-abort")
    assert (run.log.end, run.log.stopped_by) == ("complete", "slo")
    assert run.report.outcomes.planned < 200
    assert (run.code, words(run)) == (Exit.SLO_MISSED, ["FAIL"])
    assert run.log.stopped_why.startswith("time_to_first_token.p99<1ms: ")
    assert "STOPPED: time_to_first_token.p99<1ms" in run.out


def test_a_load_goes_on_while_each_can_still_be_met(profile):
    run = profile(f"{LOOP} --request-count 400 --slo e2e.p90<1s --slo-abort")
    assert (run.log.stopped_by, run.code, words(run)) == (None, Exit.DONE, ["PASS"])
    assert run.report.outcomes.planned == 400


def test_warmup_requests_do_not_count(profile):
    run = profile(f"{LOOP} --request-count 4000 --warmup-request-count 400 --slo ttft.p99<1ms --slo-abort")
    assert run.log.stopped_by == "slo"
    assert [phase.planned for phase in run.log.phases if phase.kind == "warmup"] == [400]
    assert run.report.outcomes.planned > 4000 / 100


def test_a_load_over_sockets_ends_as_well(profile, simulate):
    engine = simulate("--step-ms 5")
    run = profile(
        f"--url {engine.url} --streaming --isl 16 --osl 4 --concurrency 4 --request-count 2000 --slo e2e.p90<1ms"
        " --slo error_rate<0.1% --slo-abort"
    )
    assert run.log.stopped_by == "slo"
    assert run.report.slo[0].verdict == "FAIL"
    assert run.report.outcomes.planned < 2000
    assert run.code in (Exit.SLO_MISSED, Exit.INVALID), run.err


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ("--slo ttft.p99<1", "the limit needs a unit: us, ms, s"),
        ("--slo queue_wait.p99<1s", "queue_wait has no value in this run"),
        ("--slo tpot<1ms --goodput tpot:2", "limit the same; leave one of them out"),
        ("--slo-abort", "has no effect without an objective"),
        ("--slo ttft.p99<1s --slo-abort --duration 3", "give --request-count"),
        ("--slo ,", "slo.objectives"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_sent(profile, more, said):
    run = profile(f"{LOOP} {more}")
    assert run.code == Exit.USAGE
    assert said in run.err
    assert not run.path.exists()


def test_a_file_has_them_as_a_list_or_a_text(profile, tmp_path):
    (tmp_path / "a.toml").write_text('[slo]\nobjectives = ["e2e.p90<1s", "ttft.p90<1s"]\n')
    (tmp_path / "b.toml").write_text('[slo]\nobjectives = "e2e.p90<1s,ttft.p90<1s"\n')
    found = [
        profile(f"{LOOP} --request-count 100 --config {tmp_path / name}").report.slo
        for name in ("a.toml", "b.toml")
    ]
    assert found[0] == found[1]
    assert [one.objective for one in found[0]] == [
        "request_latency.p90<1000ms",
        "time_to_first_token.p90<1000ms",
    ]
