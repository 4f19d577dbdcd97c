"""Several deployments on one clock, and requests of several kinds: nobody is ahead of what another may cause."""

from __future__ import annotations

from itertools import pairwise

import pytest

MS = 1_000_000
BASE_NS = 1_000 * MS


def chains(run):
    """Per server, the requests in the order in which they were sent."""
    return {number: [row for row in run.rows if row["target"] == number] for number in (0, 1)}


def test_what_ends_at_one_server_is_followed_at_another_at_that_instant(simulate):
    run = simulate("--osl 3 --concurrency 1 --request-count 10", engines=2, step_ms=10)
    for number, row in enumerate(run.rows):
        assert row["target"] == number % 2
        assert row["sent_ns"] == BASE_NS + number * 30 * MS
        assert row["done_ns"] == row["sent_ns"] + 30 * MS


def test_a_request_joins_the_step_after_its_arrival_though_its_server_had_long_answers_under_way(simulate):
    """The steps are unequal: of servers that step together each step is taken alone anyway."""
    run = simulate("--osl 40 --osl-stddev 15 --concurrency 6 --request-count 60", engines=2, step_ms=(7, 11))
    for number, rows in chains(run).items():
        step_ns = (7 * MS, 11 * MS)[number]
        steps = {at_ns for row in rows for at_ns in row["arrival_ns"]}
        for row in rows:
            later = sorted(at_ns for at_ns in steps if at_ns > row["sent_ns"])
            waited = row["first_ns"] - row["sent_ns"]
            assert step_ns <= waited < 2 * step_ns, row["request"]
            assert row["first_ns"] in later[:2]
            assert len(row["arrival_ns"]) == row["output_tokens"]
            assert {b - a for a, b in pairwise(row["arrival_ns"])} == {step_ns}


def test_replicas_behind_a_router_take_turns(simulate):
    run = simulate(
        "--osl 5 --request-rate inf --request-count 8", step_ms=10, data_parallel_size=2, max_num_seqs=1
    )
    assert [run.truth[number].engine for number in range(8)] == [1, 0] * 4, "the preflight went to engine 0"
    assert [row["first_ns"] - BASE_NS for row in run.rows] == [
        (10 + 50 * (number // 2)) * MS for number in range(8)
    ]


def test_a_prompt_seen_before_is_found_in_the_cache(simulate):
    run = simulate(
        "--isl 64 --osl 4 --concurrency 1 --num-sessions 3 --conversation-turn-mean 4",
        step_ms=10,
        block_size=16,
    )
    cached = {row["request"]: row["usage_cached_tokens"] for row in run.rows}
    assert cached == {request: truth.cached_tokens for request, truth in run.truth.items()}
    assert all((cached[row["request"]] > 0) == (row["turn"] > 0) for row in run.rows)


@pytest.mark.parametrize("engines", [1, 2])
def test_the_same_seed_gives_the_same_rows(simulate, engines):
    words = "--osl 20 --osl-stddev 5 --isl-stddev 4 --request-rate 70 --request-count 60"
    one, two = (simulate(words, engines=engines, step_ms=4) for _ in range(2))
    assert one.table.equals(two.table)
    assert one.log.id == two.log.id


def test_completions_and_running_counts_are_told_as_by_the_real_server(simulate):
    run = simulate(
        "--osl 6 --concurrency 2 --request-count 6 --endpoint-type completions --per-chunk-usage", step_ms=5
    )
    assert [row["chunk_tokens"] for row in run.rows] == [[1] * 6] * 6
    assert {row["input_tokens"] for row in run.rows} == {16}


def test_choices_are_streams_of_their_own(simulate):
    run = simulate("--osl 4 --concurrency 1 --request-count 3 --extra-inputs n:2", step_ms=10)
    for row in run.rows:
        assert row["choices"] == 2
        assert row["chunk_choice"] == [0, 1] * 4
        assert row["output_tokens"] == 8
    assert run.metric("inter_token_latency").p50 == 10


@pytest.mark.parametrize("engines", [1, 2])
def test_moments_at_which_nothing_happens_change_nothing(simulate, engines):
    words = "--osl 40 --osl-stddev 15 --concurrency 5 --request-count 80 --duration 600"
    plain = simulate(words, engines=engines, even=False)
    looked_at = simulate(f"{words} --stop-when request_latency:0.0001", engines=engines, even=False)
    assert looked_at.log.stopped_by is None
    assert looked_at.table.equals(plain.table)
