"""The measured client, on one small run: every figure that the bench is made of is there."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from bench.client import BenchFailed, profile
from bench.stamps import error_percent, per_s, quantile
from bench.tokens import TokenServer

pytestmark = pytest.mark.skipif(not shutil.which("gcc"), reason="the token server is compiled with gcc")
SMALL = ("--concurrency", "4", "--request-count", "12", "--isl", "16", "--osl", "4")


def test_a_run_is_measured_and_joined_with_the_servers_log(tmp_path: Path) -> None:
    with TokenServer(1000, 0, 4, tmp_path / "log") as server:
        run = profile(tmp_path / "run", server.port, *SMALL, "--random-seed", "1", memory=True)
    joined = run.with_log(server.rows())
    assert joined.height == 12
    assert joined["server_tokens"].to_list() == [4] * 12
    assert joined["server_body_hash"].n_unique() == 12
    assert len(set(run.bodies())) == 12
    assert 0 < run.cpu_s < run.host_cpu_s + 1
    assert run.begun_ns < joined["sent_ns"].min() < run.ended_ns  # type: ignore[operator]  # polars: any literal
    assert max(sample.pss_bytes for sample in run.samples) > 10_000_000


def test_a_run_that_fails_shows_what_it_said(tmp_path: Path) -> None:
    with TokenServer(0, 0, 1, None) as server, pytest.raises(BenchFailed, match=r"ended with 2:(.|\n)*isl"):
        profile(tmp_path / "run", server.port, "--isl", "0")


def test_the_arithmetic() -> None:
    import polars as pl

    assert per_s(pl.Series([0, 500_000_000, 1_000_000_000])) == 2.0
    assert quantile(pl.Series([1.0, 2.0, 3.0]), 0.5) == 2.0
    assert error_percent(pl.Series([1.02]), pl.Series([1.0]), 0.5) == pytest.approx(2.0)
