from __future__ import annotations

import time

from loadstone import clock


def test_the_offset_lies_between_what_two_looks_say():
    before = time.time_ns() - time.monotonic_ns()
    sampled = clock.sample_offset()
    after = time.time_ns() - time.monotonic_ns()
    assert min(before, after) - clock.STEP_NS < sampled.offset_ns < max(before, after) + clock.STEP_NS
    assert time.monotonic_ns() - 10_000_000_000 < sampled.mono_ns <= time.monotonic_ns()


def test_of_several_tries_the_least_disturbed_counts(monkeypatch):
    # (monotonic, wall, monotonic) of three tries: the second took 10 ns, the others longer.
    mono = iter([0, 1_000, 2_000, 2_010, 3_000, 3_500])
    wall = iter([50_700, 52_005, 53_400])
    monkeypatch.setattr(clock.time, "monotonic_ns", lambda: next(mono))
    monkeypatch.setattr(clock.time, "time_ns", lambda: next(wall))
    assert clock.sample_offset(3) == (2_005, 50_000)
