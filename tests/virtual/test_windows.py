"""Windows of simulated runs: every token is in one slice, and the steady state is where the load was as asked."""

from __future__ import annotations

import pytest

CLOSED = "--osl 20 --osl-stddev 6 --isl 40 --isl-stddev 30 --concurrency 5 --request-count 150 --warmup-request-count 10"
POISSON = "--osl 40 --isl 40 --request-rate 40 --request-count 800 --request-rate-ramp-duration 4"


@pytest.fixture(scope="module")
def closed(simulate):
    return simulate(f"{CLOSED} --slice-duration 0.4", step_ms=3, network_us=100)


@pytest.fixture(scope="module")
def poisson(simulate):
    return simulate(f"{POISSON} --slice-duration 2", step_ms=5)


@pytest.fixture(params=["closed", "poisson"])
def run(request):
    return request.getfixturevalue(request.param)


def windows(run):
    return {window.name: window for window in run.report.windows}


def start_ns(run):
    return next(phase.start_ns for phase in run.log.phases if phase.kind == "measured")


def came(run, way_ns):
    """When every token of the measured requests came, by the truth, ns after the start of the measurement."""
    return [at_ns + way_ns - start_ns(run) for row in run.rows for at_ns in run.truth[row["request"]].sent_ns]


def test_every_slice_has_the_tokens_that_came_and_the_requests_sent_in_it(run, closed):
    tokens = came(run, 100_000 if run is closed else 0)
    found = run.report.timeslices
    assert len(found) > 2
    for number, one in enumerate(found):
        last = number == len(found) - 1
        begin, end = round(one.start_s * 1e9), round(one.end_s * 1e9)
        within = sum(begin <= at < end + last for at in tokens)
        told = one.metrics["output_token_throughput"].mean * (one.end_s - one.start_s)
        # An answer's total is spread evenly over its chunks, of one token each.
        assert told == pytest.approx(within, abs=1e-6)
        assert one.planned == sum(begin <= row["sent_ns"] - start_ns(run) < end for row in run.rows)
    assert sum(one.planned for one in found) == len(run.rows)


def test_the_steady_state_of_a_closed_loop_is_all_but_its_end(closed):
    found = windows(closed)
    assert set(found) == {"whole", "measured", "steady"}
    assert found["whole"].planned == found["measured"].planned + 10
    steady = found["steady"]
    assert (steady.level, steady.level_is) == (5.0, "cap")
    assert steady.start_s == pytest.approx(0, abs=0.05)
    assert steady.share > 0.9
    assert steady.metrics["concurrency"].mean > found["measured"].metrics["concurrency"].mean
    assert not any(trend.found for trend in steady.trends)


def test_that_of_an_open_loop_begins_behind_the_ramp(poisson):
    steady = windows(poisson)["steady"]
    assert steady.level_is == "plateau"
    assert 2 < steady.start_s < 7
    assert steady.end_s <= windows(poisson)["measured"].end_s
    assert steady.metrics["output_token_throughput"].mean == pytest.approx(40 * 40, rel=0.1)
    assert poisson.metric("output_token_throughput").mean < steady.metrics["output_token_throughput"].mean


def test_every_sum_holds(run):
    (check,) = (one for one in run.report.certificate.checks if one.name == "invariants")
    assert (check.verdict, check.value) == ("VALID", 0.0)


def test_prompts_of_many_lengths_have_buckets_that_add_up(closed):
    lengths = closed.report.lengths
    assert len(lengths) > 1
    assert sum(one.planned for one in lengths) == len(closed.rows)
    told = sum(one.metrics["output_token_throughput"].mean for one in lengths)
    assert told == pytest.approx(closed.metric("output_token_throughput").mean)


def test_turns_are_told_apart(simulate):
    run = simulate("--osl 9 --concurrency 4 --num-sessions 12 --conversation-turn-mean 3", step_ms=5)
    turns = run.report.turns
    assert [turn.name for turn in turns] == ["0", "1", "2"]
    assert [turn.planned for turn in turns] == [12, 12, 12]
    for number, turn in enumerate(turns):
        latencies = [
            (row["last_ns"] - row["sent_ns"]) / 1e6 for row in run.rows if (row["turn"] or 0) == number
        ]
        assert turn.metrics["request_latency"].mean == pytest.approx(sum(latencies) / 12)
