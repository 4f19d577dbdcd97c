"""How far a ramp had come when its phase stopped."""

from __future__ import annotations

import pytest

from loadstone.config import LoadConfig
from loadstone.plan import schedule
from loadstone.summary.ramps import CutShort, cut_short


def phase(**load):
    return schedule.phases(LoadConfig(**load))[-1]


LINE = {"request_rate": 20.0, "request_rate_ramp_s": 5.0}
SERIES = {"request_rate_series": ((0.0, 5.0), (10.0, 5.0), (10.0, 20.0), (20.0, 1.0))}
GROWTH = {"request_rate_ramp_strategy": "exponential", "request_rate_ramp_start": 1.0}
SLOTS = {"concurrency": 5, "concurrency_ramp_s": 8.0}


@pytest.mark.parametrize(
    ("load", "lasted_s", "found"),
    [
        ({}, 1.0, []),
        ({"request_rate": 3.0}, 0.0, []),
        (LINE, 1.0, [CutShort("rate", 20.0, 5.0, 4.0)]),
        (LINE, 4.7, [CutShort("rate", 20.0, 5.0, 18.8)]),
        (LINE, 4.75, []),
        (LINE, 9.0, []),
        ({**LINE, **GROWTH, "request_rate": 16.0}, 2.5, [CutShort("rate", 16.0, 5.0, 4.0)]),
        (SERIES, 5.0, [CutShort("rate", 1.0, 20.0, 5.0)]),
        (SERIES, 15.0, [CutShort("rate", 1.0, 20.0, 10.5)]),
        (SERIES, 20.0, []),
        (SLOTS, 4.0, [CutShort("concurrency", 5, 7.0, 3)]),
        (SLOTS, 7.0, []),
        ({"concurrency": 9, "prefill_concurrency": 3, "prefill_concurrency_ramp_s": 4.0}, 1.5,
         [CutShort("prefill concurrency", 3, 3.0, 2)]),
        ({**LINE, **SLOTS}, 1.0, [CutShort("rate", 20.0, 5.0, 4.0), CutShort("concurrency", 5, 7.0, 2)]),
    ],
)  # fmt: skip
def test_what_did_not_come_to_its_end(load, lasted_s, found):
    assert [(*one[:3], pytest.approx(one.reached)) for one in cut_short(phase(**load), lasted_s)] == found
