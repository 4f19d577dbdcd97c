from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadstone.metrics import all_metrics
from loadstone.report import MetricResult
from loadstone.summary import measure
from loadstone.summary.endless import endless, with_infinity

NAMES = (
    "adjusted_request_latency",
    "adjusted_time_to_first_token",
    "adjusted_decode_duration",
    "adjusted_inter_token_latency",
)
EMPTY = MetricResult(unit="ms", better="lower")


@pytest.fixture
def rows(answer):
    """Two answers, a failure with a first token, one at a time limit, and two that say nothing of the server."""
    return [
        answer(50, 60, 80),
        answer(10, 12),
        answer(5, 6, outcome="reset"),
        answer(outcome="timeout-first-token", done=900),
        answer(7, outcome="cut", done=90),
        answer(outcome="client-fault"),
    ]


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("adjusted_request_latency", [80, 12, math.inf, math.inf]),
        ("adjusted_time_to_first_token", [50, 10, math.inf, math.inf]),
        ("adjusted_decode_duration", [30, 2, math.inf, math.inf]),
        ("adjusted_inter_token_latency", [15, 2, math.inf, math.inf]),
    ],
)
def test_what_failed_took_for_ever_and_what_we_ended_is_left_out(name, values, rows, tables, result):
    found = result(name, tables(*rows))
    assert found.values.tolist() == values
    assert found.note == "1 request cut off or cancelled left out."


@pytest.mark.parametrize("name", NAMES)
def test_where_nothing_failed_it_is_the_plain_latency(name, answer, tables, reason):
    run = tables(answer(50, 60), answer(7, outcome="cut", done=90))
    assert reason(name, run) == "no request failed, so it would be the plain latency once more."


def test_infinite_statistics_are_named_and_null(rows, tables):
    found = measure(all_metrics()["adjusted_request_latency"], tables(*rows))
    assert (found.count, found.min, found.p50) == (4, 12.0, 80.0)
    assert (found.mean, found.max, found.std, found.p75, found.p99) == (None,) * 5
    assert found.infinite == ("mean", "max", "std", "p75", "p90", "p95", "p99", "p99_9")
    assert found.reason is None


def test_where_all_failed_all_is_infinite(answer, tables):
    found = measure(all_metrics()["adjusted_request_latency"], tables(answer(outcome="reset")))
    assert (found.count, found.min, len(found.infinite)) == (1, None, 14)


def test_not_a_number_is_not_infinite():
    assert endless(np.array([1.0, np.inf]))
    assert not endless(np.array([1.0, 2.0]))
    assert not endless(np.array([1.0, np.nan, np.inf]))
    assert not endless(np.array([-np.inf, np.inf]))
    assert not endless(np.array([1 + 1j]))
    assert not endless(np.empty(0))


@given(st.lists(st.floats(0, 1e9), max_size=300), st.integers(1, 300))
def test_a_percentile_is_the_least_sample_that_so_many_do_not_exceed(finite, failed):
    values = np.array([*finite, *[math.inf] * failed])
    found = with_infinity(EMPTY, values.copy())
    for stat, percent in (("p1", 10), ("p50", 500), ("p90", 900), ("p99", 990), ("p99_9", 999)):
        told = math.inf if stat in found.infinite else getattr(found, stat)
        assert 1000 * (values <= told).sum() >= percent * len(values)
        assert 1000 * (values < told).sum() < percent * len(values)
    assert found.count == len(values)
    assert {"mean", "max", "std"} <= set(found.infinite)
