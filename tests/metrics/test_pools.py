"""Pools: exact while they fit, then histograms; the gaps of a run also part by part."""

from __future__ import annotations

import numpy as np
import pytest

from loadstone.histogram import RELATIVE_ERROR, Histogram
from loadstone.metrics import _pools, all_metrics
from loadstone.metrics._pools import gaps, lags
from loadstone.stats import PERCENTILES, summarise
from loadstone.summary.measure import BINNED, measure


@pytest.fixture
def run(tables, answer):
    """200 streams of 11 tokens; the later one was sent, the longer are its gaps. Two tokens in the third chunk."""
    rng = np.random.default_rng(7)
    rows = []
    for sent in rng.permutation(200):
        chunks = sent + 50 + (1 + sent / 100) * np.arange(10) + rng.random(10) * 0.3
        rows.append(
            answer(*chunks, due=sent, sent=sent, lag=0.25, counts=[1, 1, 2, 1, 1, 1, 1, 1, 1, 1], tokens=11)
        )  # fmt: skip
    return tables(*rows)


@pytest.fixture
def binned(monkeypatch):
    """Few samples fit."""
    monkeypatch.setattr(_pools, "EXACT", 1_799)


def test_a_pool_that_fits_is_exact(run):
    found = gaps(run)
    assert len(found.values) == 200 * 9 <= _pools.EXACT
    assert found.values.imag.sum() == 200 * 10
    assert found.several == pytest.approx(1 / 9)


def test_a_pool_that_does_not_fit_is_a_histogram_within_a_thousandth(run, monkeypatch):
    exact = summarise(gaps(run).values)
    monkeypatch.setattr(_pools, "EXACT", 1_799)
    found = gaps(run)
    assert isinstance(found.values, Histogram)
    assert (found.values.count, found.values.weight, found.several) == (1_800, 2_000, pytest.approx(1 / 9))
    assert found.values.mean == pytest.approx(exact.mean, rel=1e-12)
    for name, q in PERCENTILES.items():
        assert found.values.quantile(q) == pytest.approx(exact.percentiles[name], rel=RELATIVE_ERROR)


def test_batches_are_runs_of_equally_many_requests_in_the_order_of_sending(run):
    batches = gaps(run).batches
    assert len(batches) == _pools.BATCHES
    assert {part.count // 9 for part in batches} == {3, 4}
    assert sum(part.weight for part in batches) == 2_000
    means = [part.mean for part in batches]
    assert means == sorted(means)


def test_batches_are_the_same_whether_the_pool_fits_or_not(run, monkeypatch):
    before = gaps(run).batches
    monkeypatch.setattr(_pools, "EXACT", 1_799)
    assert [part.mean for part in gaps(run).batches] == [part.mean for part in before]


def test_few_requests_make_a_batch_each_and_those_without_a_gap_make_none(tables, answer):
    run = tables(answer(50, 60, sent=1), answer(70), answer(20, 24, sent=0), answer(outcome="http-500"))
    assert [part.mean for part in gaps(run).batches] == [pytest.approx(4.0), pytest.approx(10.0)]
    assert gaps(tables(answer(50))) is None


def test_lags_are_binned_beyond_the_bound(run, binned):
    found = lags(run)
    assert isinstance(found, Histogram)
    assert (found.count, found.mean, found.quantile(0.5)) == (2_000, pytest.approx(0.25), pytest.approx(0.25))


def test_lags_without_kernel_stamps_are_none(tables, answer):
    assert lags(tables(answer(50, 60, kernel_stamps=False))) is None


@pytest.mark.parametrize("name", ["inter_token_latency", "client_lag"])
def test_the_report_says_where_percentiles_are_within_a_thousandth(name, run, monkeypatch):
    exact = measure(all_metrics()[name], run)
    monkeypatch.setattr(_pools, "EXACT", 1_799)
    found = measure(all_metrics()[name], run)
    assert found.note.endswith(BINNED)
    assert BINNED not in (exact.note or "")
    assert (found.count, found.min, found.max, found.thin) == (exact.count, exact.min, exact.max, exact.thin)
    assert (found.mean, found.std) == pytest.approx((exact.mean, exact.std), rel=1e-9, abs=1e-9)
    for percentile in PERCENTILES:
        assert getattr(found, percentile) == pytest.approx(getattr(exact, percentile), rel=RELATIVE_ERROR)
