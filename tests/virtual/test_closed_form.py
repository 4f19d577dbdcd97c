"""Runs that can be worked out by hand: every step takes 10 ms, and every number follows."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest

MS = 1_000_000
BASE_NS = 1_000 * MS


@pytest.fixture(scope="module")
def one_user(simulate):
    return simulate("--osl 8 --request-count 50 --concurrency 1", step_ms=10)


def test_one_user_sends_when_the_answer_before_has_ended(one_user):
    begins = [BASE_NS + number * 80 * MS for number in range(50)]
    assert [row["due_ns"] for row in one_user.rows] == begins
    assert [row["sent_ns"] for row in one_user.rows] == begins
    assert [row["done_ns"] for row in one_user.rows] == [begin + 80 * MS for begin in begins]


def test_a_token_comes_at_the_end_of_every_step(one_user):
    for row in one_user.rows:
        assert row["arrival_ns"] == [row["sent_ns"] + step * 10 * MS for step in range(1, 9)]
        assert row["read_ns"] == row["arrival_ns"]


@pytest.mark.parametrize(
    ("metric", "value"),
    [
        ("time_to_first_token", 10),
        ("inter_token_latency", 10),
        ("time_per_output_token", 10),
        ("request_latency", 80),
        ("output_sequence_length", 8),
        ("input_sequence_length", 20),
    ],
)
def test_every_percentile_is_the_same_number(one_user, metric, value):
    found = one_user.metric(metric)
    assert (found.min, found.p50, found.p99, found.max, found.std) == (value, value, value, value, 0)


def test_rates_are_those_of_the_steps(one_user):
    assert one_user.metric("output_token_throughput").mean == 100
    assert one_user.metric("request_throughput").mean == 12.5
    assert one_user.metric("concurrency").mean == 1
    assert one_user.report.run.duration_s == 4


def test_requests_that_come_during_a_step_join_the_next_one(simulate):
    run = simulate("--osl 2 --request-rate 250 --arrival-pattern constant --request-count 4", step_ms=10)
    first, *others = run.rows
    due = [row["due_ns"] - first["due_ns"] for row in run.rows]
    assert due == [0, 4 * MS, 8 * MS, 12 * MS]
    assert [row["first_ns"] - first["due_ns"] for row in run.rows] == [10 * MS, 20 * MS, 20 * MS, 30 * MS]
    assert [row["last_ns"] - first["due_ns"] for row in run.rows] == [20 * MS, 30 * MS, 30 * MS, 40 * MS]
    assert len(others) == 3


def test_a_slot_is_filled_at_the_instant_at_which_it_frees(simulate):
    run = simulate("--osl 4 --request-count 30 --concurrency 3", step_ms=10)
    for number, row in enumerate(run.rows):
        assert row["due_ns"] == row["sent_ns"] == BASE_NS + number // 3 * 40 * MS


def test_a_rate_with_a_cap_queues_and_the_wait_counts_from_due(simulate):
    run = simulate(
        "--osl 4 --request-count 10 --concurrency 1 --request-rate 50 --arrival-pattern constant", step_ms=10
    )
    begin_ns = run.log.phases[0].start_ns
    first_due_ns = run.rows[0]["due_ns"] - begin_ns
    for number, row in enumerate(run.rows):
        assert row["due_ns"] == begin_ns + first_due_ns + number * 20 * MS
        assert row["sent_ns"] == begin_ns + first_due_ns + number * 40 * MS
    assert run.metric("request_latency_from_due").max == 40 + 9 * 20
    assert run.metric("queue_wait").max == 9 * 20


def test_a_think_time_counts_from_the_end_of_the_turn_before(simulate):
    run = simulate(
        "--osl 4 --num-sessions 3 --concurrency 1 --conversation-turn-mean 3 --conversation-turn-delay-mean 100",
        step_ms=10,
    )
    assert len(run.rows) == 9
    for before, row in zip(run.rows, run.rows[1:], strict=False):
        wait_ms = 100 if row["turn"] else 0
        assert row["due_ns"] == row["sent_ns"] == before["done_ns"] + wait_ms * MS


def test_what_is_under_way_when_the_grace_ends_is_cut(simulate):
    run = simulate("--osl 100 --concurrency 2 --duration 0.25 --benchmark-grace-period 0.05", step_ms=10)
    assert run.report.outcomes.counts == {"cut": 2}
    for row in run.rows:
        assert row["done_ns"] == BASE_NS + 300 * MS
        assert row["arrival_ns"] == [BASE_NS + step * 10 * MS for step in range(1, 31)]


def test_a_request_cancelled_as_planned_ends_when_it_was_to(simulate):
    run = simulate(
        "--osl 10 --request-count 20 --concurrency 2 --request-cancellation-rate 50 --request-cancellation-delay 0.035",
        step_ms=10,
    )
    cancelled = [row for row in run.rows if row["outcome"] == "cancelled-as-planned"]
    assert 0 < len(cancelled) < 20
    for row in cancelled:
        assert row["done_ns"] == row["sent_ns"] + 35 * MS
        assert len(row["arrival_ns"]) in (3, 4)  # as the steps lie when it joins


def test_a_limit_of_the_first_token_ends_what_waits_in_the_engine(simulate):
    run = simulate(
        "--osl 20 --request-rate inf --request-count 3 --first-token-timeout-seconds 0.1 --failed-request-threshold 1",
        step_ms=10,
        max_num_seqs=1,
    )
    assert [row["outcome"] for row in run.rows] == ["ok-length", "timeout-first-token", "timeout-first-token"]
    assert [row["done_ns"] - BASE_NS for row in run.rows] == [200 * MS, 100 * MS, 100 * MS]
    assert run.truth[1].tokens == 0
    assert run.truth[1].scheduled_ns is None


def test_a_limit_of_the_whole_ends_an_answer_that_takes_too_long(simulate):
    run = simulate(
        "--osl 20 --request-count 2 --concurrency 1 --request-timeout-seconds 0.105 --failed-request-threshold 1",
        step_ms=10,
    )
    assert [row["outcome"] for row in run.rows] == ["timeout-total"] * 2
    assert [len(row["arrival_ns"]) for row in run.rows] == [10, 10]
    # The client leaves in the middle of a step, and the next request joins behind it.
    assert [row["done_ns"] - BASE_NS for row in run.rows] == [105 * MS, 210 * MS]
    assert run.rows[1]["first_ns"] - BASE_NS == 120 * MS


def test_a_step_that_is_longer_than_a_pause_may_be_ends_who_waits_for_its_token(simulate):
    run = simulate(
        "--osl 4 --request-count 2 --concurrency 1 --idle-timeout-seconds 0.3 --failed-request-threshold 1",
        step_ms=400,
    )
    assert [row["outcome"] for row in run.rows] == ["timeout-idle"] * 2
    # One token; then nothing for 0.3 s. The step goes on, and the next request joins behind it.
    assert [row["arrival_ns"] for row in run.rows] == [[BASE_NS + 400 * MS], [BASE_NS + 1200 * MS]]
    assert [row["done_ns"] - BASE_NS for row in run.rows] == [700 * MS, 1500 * MS]


def test_a_pause_as_long_as_it_may_be_is_none(simulate):
    run = simulate("--osl 4 --request-count 2 --concurrency 1 --idle-timeout-seconds 0.4", step_ms=400)
    assert run.report.outcomes.counts == {"ok-length": 2}


def test_a_long_prompt_of_another_is_a_pause(simulate, tmp_path):
    lines = [
        {"timestamp": 0, "input_length": 16, "output_length": 50},
        {"timestamp": 100, "input_length": 400, "output_length": 1},
    ]
    trace = tmp_path / "trace.jsonl"
    trace.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    run = simulate(
        f"--input-file {trace} --fixed-schedule --idle-timeout-seconds 0.3 --failed-request-threshold 1",
        isl=False,
        even=False,
        step_ms=10,
        step_us_per_sequence=0,
        prefill_us_per_token=1000,
    )
    first, second = run.rows
    assert [row["outcome"] for row in run.rows] == ["timeout-idle", "ok-length"]
    assert second["first_ns"] - second["sent_ns"] > 400 * MS
    assert first["done_ns"] - first["last_ns"] == 300 * MS


def test_who_gave_way_and_waits_for_too_long_is_ended(simulate):
    keys = {"step_ms": 10, "num_gpu_blocks_override": 9, "block_size": 16, "enable_prefix_caching": "false"}
    words = "--osl 60 --isl 40 --request-rate inf --request-count 2"
    waits = simulate(words, **keys)
    first, second = waits.rows
    assert waits.truth[1].preemptions == 1
    gap_ns = max(b - a for a, b in pairwise(second["arrival_ns"]))
    before = [at_ns for at_ns in second["arrival_ns"] if at_ns < first["done_ns"]]
    assert gap_ns > 200 * MS
    run = simulate(f"{words} --idle-timeout-seconds 0.2 --failed-request-threshold 1", **keys)
    assert [row["outcome"] for row in run.rows] == ["ok-length", "timeout-idle"]
    assert run.rows[1]["arrival_ns"] == before
    assert run.rows[1]["done_ns"] == before[-1] + 200 * MS


def test_without_streaming_an_answer_comes_whole(simulate):
    run = simulate("--osl 8 --request-count 3 --concurrency 1", streaming=False, step_ms=10)
    for row in run.rows:
        assert (row["first_ns"], row["arrival_ns"], row["streamed"]) == (None, [], False)
        assert row["done_ns"] - row["sent_ns"] == 80 * MS
        assert (row["output_tokens"], row["output_tokens_source"]) == (8, "usage")
    assert run.metric("request_latency").p50 == 80


@pytest.mark.parametrize(("way", "first_ms"), [({"network_us": 0}, 10), ({"network_us": None}, 20)])
def test_what_follows_an_answer_misses_the_step_that_begins_with_its_end(simulate, way, first_ms):
    """Unless there is no way between them: then it is there at the instant at which that step begins."""
    run = simulate("--osl 30 --osl-stddev 9 --request-count 40 --concurrency 4", step_ms=10, **way)
    ends = {row["done_ns"]: row["request"] for row in run.rows}
    beside = [row for row in run.rows[4:] if sum(row["sent_ns"] < end_ns for end_ns in ends) > 1]
    assert [row["due_ns"] == row["sent_ns"] and row["sent_ns"] in ends for row in beside] == [True] * len(
        beside
    )
    assert {row["first_ns"] - row["sent_ns"] for row in beside} == {first_ms * MS}


def test_an_idle_engine_begins_when_a_request_has_come(simulate):
    run = simulate("--osl 8 --request-count 5 --concurrency 1", step_ms=10, network_us=None)
    for row in run.rows:
        assert row["first_ns"] - row["sent_ns"] == 10 * MS + 2 * MS // 10
        assert row["done_ns"] - row["sent_ns"] == 80 * MS + 2 * MS // 10


def test_a_client_that_leaves_has_the_tokens_that_had_come(simulate):
    run = simulate(
        "--osl 100 --concurrency 2 --duration 0.25 --benchmark-grace-period 0.05", step_ms=10, network_us=3000
    )
    for row in run.rows:
        assert row["done_ns"] == BASE_NS + 300 * MS
        assert row["arrival_ns"] == [BASE_NS + step * 10 * MS + 6 * MS for step in range(1, 30)]
        truth = run.truth[row["request"]]
        assert (truth.tokens, truth.last_sent_ns) == (30, BASE_NS + 303 * MS)


def test_a_pause_is_measured_where_the_tokens_come(simulate):
    words = "--osl 4 --request-count 2 --concurrency 1 --idle-timeout-seconds"
    run = simulate(f"{words} 0.3 --failed-request-threshold 1", step_ms=400, network_us=1000)
    assert [row["outcome"] for row in run.rows] == ["timeout-idle"] * 2
    assert run.rows[0]["arrival_ns"] == [BASE_NS + 402 * MS]
    assert run.rows[0]["done_ns"] == BASE_NS + 702 * MS
    patient = simulate(f"{words} 0.4", step_ms=400, network_us=1000)
    assert patient.report.outcomes.counts == {"ok-length": 2}


def test_a_refusal_needs_both_ways(simulate):
    run = simulate(
        "--isl 40 --osl 4 --request-count 2 --concurrency 1 --failed-request-threshold 1",
        step_ms=10,
        max_model_len=44,
        network_us=3000,
    )
    assert [row["outcome"] for row in run.rows] == ["http-invalid"] * 2
    assert [row["done_ns"] - row["sent_ns"] for row in run.rows] == [7 * MS] * 2
