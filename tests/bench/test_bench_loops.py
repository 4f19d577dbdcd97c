"""The arithmetic of the load measurements, on requests made by hand."""

from __future__ import annotations

import polars as pl
import pytest
from bench.closed_loop import mean_in_flight, refill_gaps
from bench.full_rate import nearest_number

S = 1_000_000_000


def requests(*times_s: tuple[float, float]) -> pl.DataFrame:
    return pl.DataFrame(
        {
            "sent_ns": [round(sent * S) for sent, _ in times_s],
            "done_ns": [round(done * S) for _, done in times_s],
        }
    )


def test_a_refill_is_matched_with_the_end_before_it() -> None:
    two_slots = requests((0, 1.0), (0, 1.2), (1.001, 2.0), (1.203, 2.1), (2.002, 3.0))
    assert refill_gaps(two_slots, 2).to_list() == [1_000_000, 3_000_000, 2_000_000]


def test_slots_are_counted_over_time_once_settled() -> None:
    one_and_a_half = requests((0, 3.0), (0, 3.0), (3.0, 4.0), (4.0, 5.0))
    assert mean_in_flight(one_and_a_half) == pytest.approx(1.5)
    assert mean_in_flight(requests((0, 9.0), (0, 9.0), (4.0, 5.0))) == pytest.approx(2.0)


def test_the_ceiling_is_the_number_that_comes_nearest() -> None:
    headline = "INVALID, and late: the client could not keep up; 1 worker sent 9,870 of 30,000 requests/s."
    assert nearest_number(headline, 9_871.2) == 9_870
    assert nearest_number("nothing was said", 5.0) == 0
