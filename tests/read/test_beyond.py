"""What a decoder counts as beyond an objective is what the metric would say."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadstone.board import WORDS, Field
from loadstone.metrics import per_request
from loadstone.read.beyond import VALUES, count
from loadstone.slo import Watched


def counted(row, limits, failures=False, others=()):
    """How much each objective that is watched gained."""
    one = Watched(objective="", limits=limits, failures=failures, most=0, planned=1)
    block = memoryview(bytearray(WORDS * 8)).cast("q")
    count(block, row, [*others, one])
    return block[Field.BEYOND + len(others)]


ROW = {
    "outcome": "ok", "due_ns": 0, "sent_ns": 10_000_000, "first_ns": 60_000_000, "last_ns": 260_000_000,
    "done_ns": 300_000_000, "output_tokens": 5, "coalesced": False, "streamed": True, "choices": 1,
}  # fmt: skip


@pytest.mark.parametrize(
    ("metric", "value_ms"),
    [
        ("time_to_first_token", 50),
        ("time_to_first_token_from_due", 60),
        ("request_latency", 250),
        ("request_latency_from_due", 260),
        ("time_per_output_token", 50),
    ],
)
def test_a_value_at_the_limit_is_kept(metric, value_ms):
    assert counted(ROW, {metric: value_ms}) == 0
    assert counted(ROW, {metric: value_ms - 0.001}) == 1


def test_one_limit_of_several_is_enough_and_counts_once():
    assert counted(ROW, {"time_to_first_token": 900, "request_latency": 10, "time_per_output_token": 1}) == 1


@pytest.mark.parametrize(
    ("outcome", "beyond"), [("reset", 1), ("timeout-total", 1), ("cut", 0), ("cancelled", 0)]
)
def test_a_failure_is_beyond_where_failures_count_and_what_we_cut_off_never_is(outcome, beyond):
    row = ROW | {"outcome": outcome}
    assert counted(row, {"request_latency": 1}, failures=True) == beyond
    assert counted(row, {"request_latency": 1}) == 0


def test_an_answer_in_one_piece_has_its_end_alone():
    row = ROW | {"streamed": False, "first_ns": None, "last_ns": None}
    assert counted(row, {"request_latency": 289}) == 1
    assert counted(row, {"time_to_first_token": 1, "time_per_output_token": 1}) == 0


def test_each_has_a_counter_of_its_own():
    other = Watched(objective="", limits={}, failures=False, most=0, planned=1)
    assert counted(ROW, {"request_latency": 1}, others=[other] * 7) == 1


@given(
    sent=st.floats(0, 50),
    gaps=st.lists(st.floats(0, 40), min_size=1, max_size=5),
    tokens=st.integers(1, 9),
    coalesced=st.booleans(),
    streamed=st.booleans(),
)
def test_what_is_counted_is_beyond_by_the_metric_too(build, sent, gaps, tokens, coalesced, streamed):
    row, tables = build(sent, np.cumsum([60.0, *gaps]), tokens, coalesced, streamed)
    for metric in VALUES:
        value = per_request(metric, tables)[0]
        for limit in (1.0, 30.0, 90.0, 200.0):
            if counted(row, {metric: limit}):
                assert value > limit


@pytest.fixture(scope="module")
def build():
    """A row, and the tables of it."""
    import msgspec
    import polars as pl
    from tests.conftest import _answer

    from loadstone.config import Config, EndpointConfig, LoadConfig
    from loadstone.folder import PhaseLog
    from loadstone.metrics import Tables
    from loadstone.read.schema import REQUESTS

    config = Config(endpoint=EndpointConfig(streaming=True), load=LoadConfig(request_rate=1.0))

    class Run:
        phases = (PhaseLog(name="measured", kind="measured", first_row=0, planned=1, start_ns=0, stop_ns=2**62, end_ns=2**62),)  # fmt: skip
        simulated = False
        cut_off = False
        config = None

    Run.config = msgspec.to_builtins(config)

    def make(sent, arrivals, tokens, coalesced, streamed):
        row = _answer(
            *arrivals, sent=sent, due=0.0, tokens=tokens, coalesced=coalesced, streamed=streamed, choices=1
        )
        frame = pl.DataFrame([row], schema=REQUESTS, strict=False)
        return row, Tables.read(frame.lazy(), Run)

    return make
