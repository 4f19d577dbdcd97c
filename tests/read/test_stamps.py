from __future__ import annotations

import numpy as np
import pytest

from loadstone.read.stamps import NEAR_NS, Offsets

BASE = 1_700_000_000_123_456_789


def offsets(*samples):
    taken = Offsets()
    taken.add(np.array([at for at, _ in samples]), np.array([offset for _, offset in samples]))
    return taken


def arrivals(taken, *reads):
    arrival, known = taken.arrivals(np.array([r for r, _ in reads]), np.array([s for _, s in reads]))
    return arrival.tolist(), known.tolist()


def test_a_steady_clock_gives_exact_times():
    taken = offsets((0, BASE), (1_000_000, BASE))
    assert arrivals(taken, (500_003, BASE + 500_001)) == ([500_001], [True])


def test_between_two_samples_the_offset_moves_evenly():
    taken = offsets((0, BASE), (1_000_000, BASE + 100))
    assert arrivals(taken, (500_000, BASE + 499_050)) == ([499_000], [True])


@pytest.mark.parametrize(("read_ns", "offset"), [(-5_000, BASE), (9_000_000, BASE + 100)])
def test_outside_of_the_samples_the_nearest_counts(read_ns, offset):
    taken = offsets((0, BASE), (1_000_000, BASE + 100))
    assert arrivals(taken, (read_ns, offset + read_ns - 7)) == ([read_ns - 7], [True])


def test_an_arrival_is_never_later_than_its_read():
    assert arrivals(offsets((0, BASE)), (100, BASE + 150)) == ([100], [True])


def test_without_a_stamp_the_moment_of_reading_counts():
    assert arrivals(offsets((0, BASE)), (100, 0), (200, BASE + 190)) == ([100, 190], [False, True])


def test_without_any_sample_no_stamp_can_be_used():
    assert arrivals(Offsets(), (100, BASE + 90)) == ([100], [False])


@pytest.mark.parametrize("jump", [60_000_000_000, -60_000_000_000, 2_000_000])
def test_reads_near_a_jump_of_the_wall_clock_keep_their_read_time(jump):
    taken = offsets((0, BASE), (10_000, BASE), (20_000, BASE + jump), (9 * NEAR_NS, BASE + jump))
    late = 20_001 + NEAR_NS
    reads = (
        (9_000, BASE + 8_999),
        (15_000, BASE + 14_999),
        (20_000 + NEAR_NS, BASE),
        (late, BASE + jump + late - 1),
    )
    assert arrivals(taken, *reads) == (
        [8_999, 15_000, 20_000 + NEAR_NS, late - 1],
        [True, False, False, True],
    )
    assert taken.steps == 1


def test_slewing_is_no_jump():
    assert offsets((0, BASE), (250_000_000, BASE + 125_000)).steps == 0


def test_samples_may_come_in_parts():
    taken = offsets((0, BASE))
    taken.add(np.array([50]), np.array([BASE]))
    assert (taken.last_ns, Offsets().last_ns) == (50, 0)
