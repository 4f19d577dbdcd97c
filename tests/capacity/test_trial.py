"""Trials against queues whose waits are known, and the rule that says whether a rate is sustained."""

from __future__ import annotations

import heapq

import numpy as np
import pytest

from loadstone.capacity.trial import METRICS, sustained, trial
from loadstone.capacity.workload import Dealt, Workload
from loadstone.errors import UsageError
from loadstone.sim.build import deployment
from loadstone.sim.options import SimOptions
from loadstone.slo import Objective, objectives

ONE = Workload(isl=10, osl=1)


def run(options, asked, rate, count=4000, slo="ttft.mean<1s", seed=0, **more):
    return trial(
        deployment(options), asked, rate, count, objectives([slo], METRICS, "p99"), seed=seed, **more
    )


def test_requests_that_never_meet_take_their_steps(batch):
    found = run(batch, Workload(isl=10, osl=5), 1e-3, 100)
    assert found.values["time_to_first_token", "p99"] == 10.0
    assert found.values["inter_token_latency", "p50"] == 10.0
    assert found.values["time_per_output_token", "p99"] == 10.0
    assert found.values["request_latency", "p50"] == 50.0
    assert found.sustained
    assert found.preemptions == 0


@pytest.mark.parametrize("load", [0.5, 0.8])
def test_answers_of_one_token_on_one_slot_are_m_d_1(server, load):
    """Mean wait of M/D/1: load / (2 (1 - load)) services (Pollaczek and Khinchine)."""
    means = [run(server, ONE, 100 * load, 20_000, seed=seed).values["time_to_first_token", "mean"] for seed in range(6)]  # fmt: skip
    assert np.mean(means) == pytest.approx(10 + 10 * load / (2 * (1 - load)), rel=0.04)


def test_the_tail_of_m_d_1(server):
    """P(wait > t) at load 0.5 by Erlang's series; 99 % wait less than 3.0 services (sum over the Poisson terms)."""
    found = run(server, ONE, 50, 40_000, "ttft.p99<1s")
    assert found.values["time_to_first_token", "p99"] == pytest.approx(
        10 * (1 + tail_m_d_1(0.5, 0.99)), rel=0.06
    )


def tail_m_d_1(load, share):
    """The wait, in services, that this share does not exceed: Erlang's series by bisection."""
    from math import exp, factorial, floor

    def below(t):
        return (1 - load) * sum(
            (load * (k - t)) ** k / factorial(k) * exp(-load * (k - t)) for k in range(floor(t) + 1)
        )

    low, high = 0.0, 12.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if below(middle) < share else (low, middle)
    return low


def test_a_batch_without_limit_runs_as_many_as_little_says(batch):
    found = run(batch, Workload(isl=10, osl=100), 50, 5000)
    assert found.running == pytest.approx(50 * 1.0, rel=0.05)
    assert found.output_tokens_s == pytest.approx(50 * 100, rel=0.05)


def test_an_answer_of_one_token_has_no_gaps_and_keeps_no_objective_of_them(batch):
    found = run(batch, ONE, 1, 100, "itl<1s,ttft<1s")
    assert found.values["inter_token_latency", "p99"] is None
    assert found.broken(objectives(["itl<1s,ttft<1s"], METRICS, "p99")) == [
        Objective("inter_token_latency", "p99", 1000.0)
    ]
    assert not found.keeps(objectives(["itl<1s"], METRICS, "p99"))


def test_a_rate_above_capacity_is_not_sustained_and_may_be_given_up(server):
    whole, cut = (
        run(server, ONE, 130, 4000, "ttft.p99<100ms", to_the_end=to_the_end) for to_the_end in (True, False)
    )
    assert (whole.complete, whole.sustained) == (True, False)
    assert (cut.complete, cut.sustained) == (False, False)
    assert cut.broken(objectives(["ttft.p99<100ms"], METRICS, "p99"))


def test_what_is_given_up_would_not_have_been_kept(server):
    slo = objectives(["ttft.p90<40ms,latency.p50<25ms"], METRICS, "p99")
    for rate in (30, 50, 70, 80, 90, 95):
        whole, cut = (
            run(server, ONE, rate, 2000, "ttft.p90<40ms,latency.p50<25ms", to_the_end=to_the_end)
            for to_the_end in (True, False)
        )
        assert whole.keeps(slo) == cut.keeps(slo)
        assert whole == cut or not cut.complete


def test_the_same_seed_gives_the_same_trial(server):
    assert run(server, ONE, 80) == run(server, ONE, 80)
    assert run(server, ONE, 80) != run(server, ONE, 80, seed=1)


def test_even_arrivals_wait_less(server):
    waits = [run(server, ONE, 90, dealt=Dealt(n)).values["time_to_first_token", "p99"] for n in (1, 4, 100)]
    assert waits == sorted(waits, reverse=True)
    assert waits[-1] < 2 * 10.0 < waits[0]


def test_shared_beginnings_are_found_again(batch):
    found = run(batch, Workload(isl=64, osl=2, prefix=32), 10, 1000)
    assert found.hit_share == pytest.approx(0.5, abs=0.01)
    assert run(batch, Workload(isl=64, osl=2), 10, 1000).hit_share == 0.0


def test_a_request_that_can_never_be_served_is_a_mistake_of_the_question():
    with pytest.raises(UsageError, match="--workload: a request has 110 tokens"):
        run(SimOptions(max_model_len=100), Workload(isl=100, osl=10), 1, 100)


# ---- the rule -------------------------------------------------------------------------------------------


def queue(load, count, servers=1, seed=0, spread=0.0):
    """Arrivals and ends of a queue with so many servers, service a second x servers x load."""
    random = np.random.default_rng(seed)
    starts = np.cumsum(random.exponential(1.0, count))
    service = load * servers * random.lognormal(-(spread**2) / 2, spread, count)
    free = [0.0] * servers
    ends = []
    for start, takes in zip(starts, service, strict=True):
        ends.append(max(heapq.heappop(free), start) + takes)
        heapq.heappush(free, ends[-1])
    return (starts * 1e9).astype(np.int64), np.sort(np.array(ends) * 1e9).astype(np.int64)


@pytest.mark.parametrize(("servers", "spread"), [(1, 0.0), (100, 0.0), (100, 1.0)])
def test_what_is_served_is_sustained_and_what_piles_up_is_not(servers, spread):
    def share(load):
        return np.mean([sustained(*queue(load, 3000, servers, seed, spread)) for seed in range(10)])

    assert share(0.7) == 1.0
    assert share(0.85) >= 0.9
    assert share(1.15) <= 0.1
    assert share(1.3) == 0.0
