"""The runs that the intervals are tried on have the truth that is said."""

from __future__ import annotations

import numpy as np
import pytest

from bench import elsewhere


@pytest.mark.parametrize(
    ("service", "load", "square"),
    [(elsewhere.steady(), 0.8, 1.0), (elsewhere.exponential(), 0.5, 2.0), (elsewhere.uneven(4.0), 0.7, 5.0)],
)
def test_waits_are_those_of_pollaczek_and_khinchine(service, load, square):
    random = np.random.default_rng(1)
    waits = elsewhere.waits(load, service, 400_000, random)
    assert waits.mean() == pytest.approx(load * square / (2 * (1 - load)), rel=0.02)
    assert (waits == 0).mean() == pytest.approx(1 - load, abs=0.005)
    services = service.whole(random, 400_000)
    assert services.mean() == pytest.approx(1.0, rel=0.02)
    assert (services**2).mean() == pytest.approx(square, rel=0.05)


def test_the_engines_requests_are_in_the_order_of_sending():
    sent, latencies = elsewhere.engine(50, 4, np.random.default_rng(1))
    assert sent.shape == latencies.shape == (4, 50)
    assert (sent[:, 0] == 0).all()
    assert (np.diff(sent) > 0).all()
    assert latencies.min() >= 0.0105, "one step of one sequence"
    assert latencies.mean() == pytest.approx(0.29, rel=0.4)


def test_lognormal_series_have_their_mean_and_their_memory():
    series = elsewhere.lognormal(0.7, 500, 400, np.random.default_rng(1))
    assert series.mean() == pytest.approx(np.exp(0.5), rel=0.02)
    logs = np.log(series)
    assert np.corrcoef(logs[1:].ravel(), logs[:-1].ravel())[0, 1] == pytest.approx(0.7, abs=0.01)
