"""The queues that the coverage is measured on are those that the built-in engine plays."""

from __future__ import annotations

from math import ceil

import numpy as np
from bench.coverage import sojourns

from loadstone.sim.cost import Linear
from loadstone.sim.deployment import Deployment
from loadstone.sim.drive import drive
from loadstone.sim.engine import Engine, Limits
from loadstone.sim.sequence import Sequence

STEP_NS = 1_000_000
STEPS = 200
"""Mean length of a service."""


def test_the_engine_on_the_virtual_clock_is_the_recursion():
    random = np.random.default_rng(1)
    services = np.ceil(random.exponential(STEPS, 2_000)) * STEP_NS
    gaps = np.ceil(random.exponential(STEPS * STEP_NS / 0.8, 1_999))
    sent = np.concatenate(([0], np.cumsum(gaps)))
    engine: Engine[Sequence] = Engine(Linear(STEP_NS, 0, 0), Limits(max_num_seqs=1, caching=False))
    requests = [Sequence(1, ceil(service / STEP_NS)) for service in services]
    ended = {one: at for at, one in drive(Deployment([engine]), zip(map(int, sent), requests, strict=True))}
    latencies = np.array([ended[one] for one in requests]) - sent
    assert latencies.tolist() == sojourns(services[0], gaps, services[1:]).tolist(), "to the nanosecond"
    assert np.mean(latencies) > 2 * STEPS * STEP_NS, "there was a queue"


def test_the_recursion_by_hand():
    assert sojourns(np.array(3.0), np.array([1.0, 9.0]), np.array([2.0, 1.0])).tolist() == [3.0, 4.0, 1.0]
