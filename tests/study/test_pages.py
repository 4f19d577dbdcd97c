"""A study for a CI."""

from __future__ import annotations

from xml.etree import ElementTree

from loadstone.report import MetricResult, SloVerdict
from loadstone.study.aggregate import RunLine, spreads
from loadstone.study.document import Study
from loadstone.study.pages import junit, markdown


def line(name, fault=None, side="run"):
    return RunLine(name=name, side=side, seed=7, exit=0, verdict="VALID", fault=fault)


def objective(verdict):
    return SloVerdict(
        objective="request_latency.p99<100ms",
        metric="request_latency",
        stat="p99",
        limit=100.0,
        better="lower",
        unit="ms",
        value=50.0,
        interval=None,
        verdict=verdict,
        finding="The mean over 3 runs is 49 to 51 ms (95 %).",
        more_requests=None,
    )


def study(runs, slo=(), **more):
    found = [
        {"request_latency": MetricResult(unit="ms", better="lower", count=9, mean=v, p50=v, p99=v)}
        for v in (49.0, 51.0)
    ]
    told = {"command": "loadstone profile", "started": "2026-12-01T00:00:00Z", "seed": 7, "asked": len(runs)}
    sides = {"run": spreads(found)}
    return Study(
        **{**told, "runs": tuple(runs), "sides": sides, "slo": {"run": tuple(slo)} if slo else {}, **more}
    )


def test_every_run_and_every_objective_is_a_test_case():
    root = ElementTree.fromstring(
        junit(study([line("run-1"), line("run-2", "it failed")], [objective("FAIL")])).encode()
    )
    assert (root.get("tests"), root.get("failures"), root.get("errors")) == ("3", "2", "0")
    assert [case.get("name") for case in root.iter("testcase")] == [
        "run-1 counts",
        "run-2 counts",
        "request_latency.p99<100ms",
    ]


def test_what_is_undecided_is_no_success():
    root = ElementTree.fromstring(junit(study([line("run-1")], [objective("UNDECIDED")])).encode())
    assert (root.get("failures"), root.get("errors")) == ("0", "1")


def test_markdown_has_runs_objectives_and_numbers():
    text = markdown(study([line("run-1"), line("run-2", "it failed")], [objective("PASS")]))
    assert text.startswith("## 1 of 2 runs count.\n")
    assert "- run-2: VALID, seed 7: left out, it failed" in text
    assert "| request_latency.p99&lt;100ms | **PASS** | The mean over 3 runs is 49 to 51 ms (95 %). |" in text
    assert "| request latency p50 | ms | 50.0 | 37.3 to 62.7 | 49.0 | 51.0 | 2 |" in text


def test_an_endless_mean_is_no_missing_one():
    endless = MetricResult(unit="ms", better="lower", count=9, infinite=("p99",), p50=50.0)
    text = markdown(study([line("run-1")], sides={"run": spreads([{"request_latency": endless}])}))
    assert "| request latency p99 | ms | inf | - | - | - | 1 |" in text
