"""Questions about engines whose steps take a fixed time, so that answers can be told beforehand."""

from __future__ import annotations

import pytest

from loadstone.capacity.search import Question
from loadstone.capacity.trial import METRICS
from loadstone.capacity.workload import Workload
from loadstone.sim.options import SimOptions
from loadstone.slo import objectives


@pytest.fixture
def server():
    """Each request is served alone, by one step of 10 ms: with Poisson arrivals, M/D/1."""
    return SimOptions(step_ms=10, step_us_per_sequence=0, prefill_us_per_token=0, max_num_seqs=1)


@pytest.fixture
def batch():
    """Any number of requests together, 10 ms a token."""
    return SimOptions(
        step_ms=10,
        step_us_per_sequence=0,
        prefill_us_per_token=0,
        max_num_seqs=100_000,
        max_num_batched_tokens=200_000,
    )


@pytest.fixture
def ask():
    def ask(slo, rate=100.0, isl=10, osl=1, **more):
        return Question(Workload(isl=isl, osl=osl, **more), objectives([slo], METRICS, "p99"), rate)

    return ask
