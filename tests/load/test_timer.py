from __future__ import annotations

import select
import time

import pytest

from loadstone.load import timer

pytestmark = pytest.mark.skipif(not timer.available(), reason="no timerfd")
MS = 1_000_000


@pytest.fixture
def clock():
    one = timer.Timer()
    yield one
    one.close()


def fires(clock, within_s=5.0):
    return bool(select.select([clock.fd], [], [], within_s)[0])


def test_it_fires_at_its_time_and_not_before(clock):
    at_ns = time.monotonic_ns() + 20 * MS
    clock.arm(at_ns)
    assert not fires(clock, 0)
    assert fires(clock)
    assert time.monotonic_ns() >= at_ns


@pytest.mark.parametrize("at_ns", [1, 1_000_000])
def test_a_time_that_has_passed_fires_at_once(clock, at_ns):
    clock.arm(at_ns)
    assert fires(clock)


def test_it_fires_once(clock):
    clock.arm(1)
    assert fires(clock)
    clock.clear()
    assert not fires(clock, 0)
    clock.clear()


def test_arming_again_moves_the_time(clock):
    clock.arm(time.monotonic_ns() + 3_600_000 * MS)
    assert not fires(clock, 0)
    clock.arm(time.monotonic_ns() + MS)
    assert fires(clock)


def test_the_same_time_may_be_armed_again_after_it_fired(clock):
    at_ns = time.monotonic_ns()
    for _ in range(2):
        clock.arm(at_ns)
        assert fires(clock)
        clock.clear()
