"""Both walk-throughs of the issue, held to the engine's own account of what happened."""

from __future__ import annotations

import polars as pl
import pytest

STATIC = (
    "--model M --endpoint-type chat --streaming --synthetic-input-tokens-mean 128 --synthetic-input-tokens-stddev 0"
    " --output-tokens-mean 128 --output-tokens-stddev 0 --extra-inputs min_tokens:128 --extra-inputs ignore_eos:true"
)
DYNAMIC = (
    "--model M --endpoint-type chat --streaming --request-rate {} --arrival-pattern poisson"
    " --synthetic-input-tokens-mean 512 --synthetic-input-tokens-stddev 128"
    " --output-tokens-mean 128 --output-tokens-stddev 32 --random-seed 42 --request-count 200"
)
WARM = 3
CLOCKS_NS = 50_000
"""Kernel stamps are of the wall clock; two processes that map them to the monotonic one differ by microseconds."""


@pytest.fixture(scope="module")
def fast(simulate):
    return simulate("--model M --step-ms 0.5 --prefill-us-per-token 1")


@pytest.fixture(scope="module")
def static(good, fast):
    return good(f"--url {fast.url} {STATIC} --warmup-request-count {WARM}")


@pytest.fixture(scope="module")
def dynamic(good, fast):
    return good(f"--url {fast.url} {DYNAMIC.format(50)}")


def joined(run, truth):
    """The run's table with the engine's moments beside its own, one row a request."""
    rows = [(row.request_id, row.received_ns, row.first_sent_ns, row.last_sent_ns, row.prompt_tokens, row.tokens)
            for row in truth.values()]  # fmt: skip
    names = ["request_id", "received", "first_sent", "last_sent", "prompt", "tokens"]
    return run.table.join(pl.DataFrame(rows, schema=names, orient="row"), on="request_id", validate="1:1")


def agrees(run, engine, planned):
    """Asserts that the engine served this run, no more and no less, at the moments that the run claims."""
    truth = engine.truth(run, planned + 1)
    preflight = f"preflight-{run.log.id}"
    assert truth.keys() == {preflight, *(f"{run.log.id}-{row}" for row in range(planned))}
    assert truth[preflight].tokens == 1
    both = joined(run, truth)
    assert len(both) == len(run.table) == planned
    impossible = both.filter(
        (pl.col("sent_ns") > pl.col("received") + CLOCKS_NS)
        | (pl.col("first_ns") < pl.col("first_sent") - CLOCKS_NS)
        | (pl.col("last_ns") < pl.col("last_sent") - CLOCKS_NS)
        | (pl.col("first_ns") > pl.col("last_ns"))
        | (pl.col("last_ns") > pl.col("done_ns"))
    )
    assert impossible["request"].to_list() == []
    assert both["output_tokens"].to_list() == both["tokens"].to_list()
    assert both["input_tokens"].to_list() == both["prompt"].to_list()


def test_the_static_run_is_the_one_the_engine_saw(static, fast):
    agrees(static, fast, 50 + WARM)


def test_the_static_run_has_fixed_lengths(static):
    assert static.counts == {"ok-length": 50}
    assert static.report.outcomes.warmup == {"ok-length": WARM}
    isl, osl = (static.report.metrics[f"{way}_sequence_length"] for way in ("input", "output"))
    assert (isl.count, isl.min, isl.max) == (50, 132, 132)  # 128 and the 4 of the engine's chat template
    assert (osl.count, osl.min, osl.max) == (50, 128, 128)
    assert static.requests["planned_input_tokens"].unique().to_list() == [128]


def test_the_static_run_is_a_closed_loop_of_one(static):
    rows = static.requests.sort("request")
    assert (rows["sent_ns"].slice(1) > rows["done_ns"].head(49)).to_list() == [True] * 49
    assert static.report.metrics["concurrency"].max == 1


def test_what_the_static_run_sent_is_what_was_typed(static):
    assert len(static.bodies) == 50 + WARM
    assert [
        {name: value for name, value in body.items() if name != "messages"} for body in static.bodies
    ] == [
        {
            "model": "M",
            "stream": True,
            "stream_options": {"include_usage": True},
            "max_completion_tokens": 128,
            "min_tokens": 128,
            "ignore_eos": True,
        }
    ] * (50 + WARM)


def test_every_number_of_the_report_follows_from_the_table(static):
    rows = static.requests
    ttft_ms = (rows["first_ns"] - rows["sent_ns"]) / 1e6
    latency_ms = (rows["last_ns"] - rows["sent_ns"]) / 1e6
    window_s = (rows["done_ns"].max() - rows["sent_ns"].min()) / 1e9
    assert static.number("time_to_first_token") == pytest.approx(ttft_ms.mean(), rel=1e-12)
    assert static.number("request_latency") == pytest.approx(latency_ms.mean(), rel=1e-12)
    assert static.number("request_throughput") == pytest.approx(50 / window_s, rel=1e-12)
    assert static.number("output_token_throughput") == pytest.approx(50 * 128 / window_s, rel=1e-12)
    with_first = rows["arrival_ns"].map_elements(lambda at: (at == at[0]).sum(), return_dtype=pl.Int64).sum()
    assert static.report.metrics["inter_token_latency"].count == 50 * 128 - with_first


def test_the_dynamic_run_is_the_one_the_engine_saw(dynamic, fast):
    assert dynamic.report.outcomes.planned == sum(dynamic.counts.values()) == 200
    agrees(dynamic, fast, 200)


def test_the_dynamic_run_has_the_lengths_asked_for(dynamic):
    rows = dynamic.requests
    assert 512 - 28 <= rows["planned_input_tokens"].mean() <= 512 + 28
    assert 128 - 20 <= rows["planned_output_tokens"].mean() <= 128 + 20
    assert (rows["input_tokens"] - rows["planned_input_tokens"]).unique().to_list() == [4]
    assert rows["planned_input_tokens"].std() > 100
    assert rows["planned_output_tokens"].std() > 25


def test_the_dynamic_run_sent_at_its_due_times(dynamic):
    due = dynamic.due_ns
    assert due == sorted(due)
    assert due[0] > 0
    assert 3.0e9 < due[-1] < 5.0e9  # 200 arrivals at 50 a second, three standard deviations around 4 s
    assert (dynamic.requests["sent_ns"] >= dynamic.requests["due_ns"]).all()
    assert dynamic.number("offered_rate") == pytest.approx(199e9 / (due[-1] - due[0]), rel=1e-12)


@pytest.mark.slow
def test_the_dynamic_run_exactly_as_it_is_written(good, simulate):
    server = simulate("--model M")
    run = good(f"--url {server.url} {DYNAMIC.format(10)}")
    assert (run.report.run.seed, run.report.run.saturated) == (42, False)
    agrees(run, server, 200)
