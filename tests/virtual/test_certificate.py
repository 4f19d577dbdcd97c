"""What a simulated run says of itself: that it is one, and nothing of a client that it did not have."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import polars as pl
import pytest

from loadstone import checks
from loadstone.checks.simulated import WITHOUT_CLIENT
from loadstone.metrics import Tables
from loadstone.virtual.marks import NOTICE
from loadstone.virtual.moments import BASE_NS


@pytest.fixture(scope="module")
def run(simulate):
    return simulate("--osl 8 --request-rate 40 --request-count 60", step_ms=5)


def test_every_check_is_made_or_said_not_to_apply(run):
    log = msgspec.structs.replace(run.log, simulated=False)
    table = pl.scan_parquet(run.path / "requests.parquet")
    tables = Tables.read(table, log)
    from loadstone.summary import _evidence

    of_a_client = {check.name for check in checks.certify(_evidence(tables)).checks}
    made = {check.name for check in run.report.certificate.checks}
    assert made - {"simulated", "stored"} == of_a_client - set(WITHOUT_CLIENT)
    assert set(WITHOUT_CLIENT) <= of_a_client


def test_it_says_so_in_every_place(run):
    assert run.log.simulated
    assert run.report.run.simulated
    assert run.report.run.notices[0] == NOTICE
    assert (run.path / "summary.txt").read_text().startswith("SIMULATED: by the built-in engine")
    (said,) = [check for check in run.report.certificate.checks if check.name == "simulated"]
    assert said.verdict == "NOTE"
    assert f" {len(WITHOUT_CLIENT)} checks do not apply" in said.finding


def test_the_page_names_the_checks_that_do_not_apply():
    page = (Path(__file__).parents[2] / "docs" / "virtual-clock.md").read_text()
    assert ", ".join(f"`{name}`" for name in WITHOUT_CLIENT) in " ".join(page.split())


def test_it_takes_no_more_space_than_was_said(run):
    log = (run.path / "loadstone.log").read_text()
    (most_mb,) = re.findall(r"at most about ([\d,]+) MB", log)
    assert sum(path.stat().st_size for path in run.path.rglob("*")) <= int(most_mb.replace(",", "")) * 1e6


def test_what_there_was_not_is_null_or_zero(run):
    log = run.log
    assert (log.server_local, log.host_busy_share, log.deaths, log.hooks) == (False, None, [], [])
    assert (log.clock.kernel_stamps, log.clock.steps) == (False, 0)
    assert log.workers == run.report.environment["workers"] == []
    assert run.table["connect_ns"].null_count() == run.table["response_bytes"].null_count() == 60
    assert run.metric("client_lag").p50 is None


def test_the_preflight_took_as_long_as_the_engine_needs_for_it(run):
    assert run.log.preflight.latency_ms == 5
    assert run.rows[0]["sent_ns"] >= run.log.phases[0].start_ns == BASE_NS


def test_its_folder_holds_what_a_run_s_does(run):
    names = {path.name for path in run.path.iterdir()}
    assert names == {
        "config.toml", "inputs.json", "loadstone.log", "plan", "report.csv", "report.json", "requests.jsonl",
        "requests.parquet", "run.json", "summary.txt",
    }  # fmt: skip
