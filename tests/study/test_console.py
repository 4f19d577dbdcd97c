"""The study on a screen."""

from __future__ import annotations

from pathlib import Path

from loadstone.report import MetricResult
from loadstone.study.aggregate import RunLine, spreads
from loadstone.study.console import render
from loadstone.study.document import Study


def metrics(p50, tokens):
    return {
        "request_latency": MetricResult(unit="ms", better="lower", count=9, mean=p50, p50=p50, p99=2 * p50),
        "output_token_throughput": MetricResult(unit="tokens/s", better="higher", count=1, mean=tokens),
    }


def line(name, side="run", fault=None, verdict="VALID"):
    return RunLine(name=name, side=side, seed=7, exit=0, verdict=verdict, fault=fault)


def study(runs, sides, **more):
    told = {"command": "loadstone profile", "started": "2026-12-01T00:00:00Z", "seed": 7, "asked": len(runs)}
    return Study(**{**told, **more}, runs=tuple(runs), sides=sides)


def text(told):
    return render(told, Path("studies/one"), width=100, color=False)


def test_three_runs_and_their_interval():
    sides = {"run": spreads([metrics(100.0, 50.0), metrics(110.0, 50.0), metrics(120.0, 50.0)])}
    assert (
        text(study([line("run-1"), line("run-2"), line("run-3")], sides))
        == """\
3 of 3 runs count.

  run-1  VALID  seed 7
  run-2  VALID  seed 7
  run-3  VALID  seed 7

                                   mean  95 % low  high  spread   min   max
request latency p50      ms         110      85.2   135   9.1 %   100   120
request latency p99      ms         220       170   270   9.1 %   200   240
output token throughput  tokens/s  50.0      50.0  50.0     0 %  50.0  50.0

- The mean request latency is known within 22.6 % only; four times the runs halve that.

loadstone profile
files  studies/one/  study.json summary.txt"""
    )


def test_a_run_that_does_not_count_says_why():
    sides = {"run": spreads([metrics(100.0, 50.0)])}
    told = text(study([line("run-1"), line("run-2", fault="it failed", verdict=None)], sides))
    assert "1 of 2 runs count." in told
    assert "run-2  no report  seed 7\n    left out: it failed\n" in told
    assert "One run says nothing of how far runs differ" in told


def test_two_servers_have_a_table_each():
    sides = {side: spreads([metrics(100.0, 50.0), metrics(100.0, 50.0)]) for side in "ab"}
    targets = {"a": "http://one:8000", "b": "http://two:8000"}
    told = text(study([line("a-1", "a"), line("b-1", "b")], sides, targets=targets))
    assert "A  http://one:8000" in told
    assert "B  http://two:8000" in told


def test_a_study_that_ended_early_says_what_was_known():
    sides = {"run": spreads([metrics(100.0, 50.0)] * 3)}
    told = text(study([line("run-1")] * 3, sides, asked=9, ended_early="x within 1 % after 3 runs"))
    assert told.startswith("3 of 9 runs count; no more were needed: x within 1 % after 3 runs.")


def test_times_per_token_have_rows_as_gaps_have():
    names = ("inter_token_latency", "time_per_output_token")
    one = {
        name: MetricResult(unit="ms", better="lower", count=9, mean=10.0, p50=10.0, p99=12.0)
        for name in names
    }
    told = text(study([line("run-1"), line("run-2")], {"run": spreads([one, one])}))
    rows = [row.split("  ")[0] for row in told.splitlines() if " ms " in row]
    assert rows == [f"{name.replace('_', ' ')} {stat}" for name in names for stat in ("p50", "p99")]
