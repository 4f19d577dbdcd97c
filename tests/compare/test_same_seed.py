"""Runs of one seed, from their folders: closed loops that time ended, and a rate that one of the two could not keep up with."""

from __future__ import annotations

import json
import shutil

import pytest

from loadstone import compare
from loadstone.__main__ import main
from loadstone.compare.importers import read
from loadstone.compare.sides import RATES, SHARES

RUN = "profile --virtual --streaming --concurrency 4 --benchmark-duration 8 --isl 8 --osl 8 --ui none"


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    """The folder of a run whose steps take so long, with more flags."""
    folder = tmp_path_factory.mktemp("runs")

    def run(step_ms, *more, seed=5):
        home = folder / "-".join([str(step_ms), str(seed), *more])
        if not home.exists():
            words = [*RUN.split(), "--url", f"sim:step_ms={step_ms}", *more]
            words += ["--random-seed", str(seed), "--artifact-dir", str(home)]
            assert main(words) == 0
        return home

    return run


def told(a, b):
    (one,) = compare.report(compare.sides([str(a), str(b)])).comparisons
    return one


def reported(home, row):
    metrics = json.loads((home / "report.json").read_bytes())["metrics"]
    return metrics[row.metric][row.stat or "mean"]


@pytest.mark.parametrize("more", [(), ("--request-rate", "100")])
def test_what_both_sent_is_paired_and_the_columns_are_those_of_the_reports(ran, more):
    a, b = ran(10, *more), ran(14, *more)
    found = told(a, b)
    assert found.paired
    assert found.warnings == ()
    assert found.pairs == found.b.requests < found.a.requests
    for row in found.rows:
        assert (row.a, row.b) == (reported(a, row), reported(b, row)), row.metric
        assert (row.pairs is None) == (row.metric in RATES + SHARES), row.metric
    throughput = next(row for row in found.rows if row.metric == "request_throughput")
    assert throughput.differs
    assert throughput.change == pytest.approx(10 / 14, rel=0.05)


def test_a_warm_up_is_no_matter(ran):
    a, b = ran(10), ran(10, "--warmup-request-count", "3")
    assert told(a, b).pairs > 100


def test_without_a_plan_nobody_knows_which_prompt_is_which(ran, tmp_path):
    shutil.copytree(ran(14), tmp_path / "b")
    shutil.rmtree(tmp_path / "b" / "plan")
    assert read(tmp_path / "b").requests.prompts is None
    found = told(ran(10), tmp_path / "b")
    assert found.unpaired_because == "which prompt is which is not known of both"
    assert found.warnings == (
        "Whether B was asked for other prompts cannot be told: they are not equally many.",
    )


def test_another_seed_has_other_prompts(ran):
    found = told(ran(10), ran(10, seed=6))
    assert "B was asked for other prompts: " in found.warnings[-1]
    assert found.unpaired_because == "their prompts are not the same"
