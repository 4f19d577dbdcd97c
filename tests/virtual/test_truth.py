"""On the virtual clock every number is the engine's own: equal, and not nearly equal."""

from __future__ import annotations

from bisect import bisect_right
from itertools import pairwise
from statistics import fmean

import pytest

KEYS = {"step_ms": 3, "step_us_per_sequence": 37, "prefill_us_per_token": 11, "even": False}
LOADS = {
    "closed": "--osl 20 --osl-stddev 6 --isl 40 --isl-stddev 9 --concurrency 5 --request-count 80",
    "poisson": "--osl 20 --osl-stddev 6 --isl-stddev 3 --request-rate 60 --request-count 120",
    "capped": "--osl 30 --request-rate 60 --concurrency 4 --request-count 100",
    "gated": "--osl 30 --request-rate 60 --prefill-concurrency 1 --request-count 100",
    "turns": "--osl 9 --concurrency 4 --num-sessions 12 --conversation-turn-mean 3 --conversation-turn-delay-mean 40"
    " --conversation-turn-delay-stddev 9",
    "cut": "--osl 200 --request-rate 40 --duration 1 --benchmark-grace-period 0.1",
    "cancelled": "--osl 40 --concurrency 6 --request-count 80 --request-cancellation-rate 30"
    " --request-cancellation-delay 0.05",
    "preempted": "--osl 60 --isl 60 --concurrency 12 --request-count 40",
    "speculative": "--osl 30 --concurrency 3 --request-count 30",
    "choices": "--osl 10 --concurrency 3 --request-count 20 --extra-inputs n:3",
}
OF_THE_ENGINE = {
    "preempted": {"num_gpu_blocks_override": 40},
    "speculative": {"num_speculative_tokens": 3},
}


@pytest.fixture(scope="module", params=[0, 100, 7000], ids=["near", "as by default", "further than a step"])
def way_us(request):
    return request.param


@pytest.fixture(scope="module", params=LOADS)
def run(request, simulate, way_us):
    found = simulate(LOADS[request.param], network_us=way_us, **KEYS, **OF_THE_ENGINE.get(request.param, {}))
    found.name, found.way_ns = request.param, way_us * 1000
    return found


def sent(run):
    return [row for row in run.rows if row["sent_ns"] is not None]


def succeeded(run):
    return [row for row in run.rows if row["outcome"] in ("ok", "ok-length")]


def same(found, samples):
    """The statistics of a metric are those of these samples, but for the last bits of a quotient."""
    told = (found.min, found.max, found.mean)
    own = (min(samples), max(samples), fmean(samples))
    assert (found.count, *told) == (len(samples), *(pytest.approx(value, rel=1e-12) for value in own))


def test_every_request_is_in_the_truth_once(run):
    assert set(run.truth) == {row["request"] for row in sent(run)}
    run.adds_up()


def came(run, row):
    """When the tokens of a request came, by the truth: all that were sent, unless the client left before they came."""
    later = [at_ns + run.way_ns for at_ns in run.truth[row["request"]].sent_ns]
    return [at_ns for at_ns in later if at_ns <= row["done_ns"]]


def test_what_is_sent_is_received_one_way_later(run):
    for row in sent(run):
        truth = run.truth[row["request"]]
        assert row["sent_ns"] == row["written_ns"] == truth.received_ns - run.way_ns
        assert truth.received_ns == truth.read_ns


def test_no_step_takes_in_what_has_not_come(run):
    for truth in run.truth.values():
        assert truth.scheduled_ns is None or truth.scheduled_ns >= truth.received_ns


def test_every_token_arrives_one_way_after_the_end_of_its_step(run):
    for row in sent(run):
        arrivals = came(run, row)
        assert row["arrival_ns"] == row["read_ns"] == arrivals
        assert (row["first_ns"], row["last_ns"]) == (
            (arrivals[0], arrivals[-1]) if arrivals else (None, None)
        )


def test_the_server_counts_what_the_engine_made(run):
    for row in succeeded(run):
        truth = run.truth[row["request"]]
        assert row["output_tokens"] == row["usage_completion_tokens"] == truth.tokens
        assert row["input_tokens"] == row["usage_prompt_tokens"] == truth.prompt_tokens
        assert row["usage_cached_tokens"] == truth.cached_tokens
        assert row["finish_reason"] == truth.end == "length"


def test_latencies_are_the_engine_s(run):
    good = [(row, run.truth[row["request"]]) for row in succeeded(run)]
    ways_ns = 2 * run.way_ns
    firsts = [(truth.first_sent_ns - truth.received_ns + ways_ns) / 1e6 for _, truth in good]
    same(run.metric("time_to_first_token"), firsts)
    lasts = [(truth.last_sent_ns - truth.received_ns + ways_ns) / 1e6 for _, truth in good]
    same(run.metric("request_latency"), lasts)
    if run.name not in ("poisson", "capped", "gated", "cut"):
        return  # in a closed loop a request is due when its slot frees
    from_due = [(truth.last_sent_ns + run.way_ns - row["due_ns"]) / 1e6 for row, truth in good]
    same(run.metric("request_latency_from_due"), from_due)


def test_gaps_are_the_engine_s(run):
    if run.name in ("speculative", "choices"):
        pytest.skip("one instant brings several tokens, or a request several streams")
    good = [run.truth[row["request"]] for row in succeeded(run)]
    gaps = [(b - a) / 1e6 for truth in good for a, b in pairwise(truth.sent_ns)]
    same(run.metric("inter_token_latency"), gaps)
    means = [(truth.last_sent_ns - truth.first_sent_ns) / 1e6 / (truth.tokens - 1) for truth in good]
    same(run.metric("time_per_output_token"), means)


def test_pauses_and_a_reader_s_waits_are_the_engine_s(run):
    if run.name in ("speculative", "choices"):
        pytest.skip("one instant brings several tokens, or a request several streams")
    told = [run.truth[row["request"]].sent_ns for row in succeeded(run)]
    told = [moments for moments in told if len(moments) > 1]
    same(run.metric("worst_stall"), [max(b - a for a, b in pairwise(moments)) / 1e6 for moments in told])
    same(run.metric("decode_duration"), [(moments[-1] - moments[0]) / 1e6 for moments in told])
    late = [[at - moments[0] - n * 1e9 / 5.3 for n, at in enumerate(moments)] for moments in told]
    waits = [max(one) if max(one) >= 1000 else 0.0 for one in late]
    assert run.metric("rebuffering_time").max == pytest.approx(max(waits) / 1e6, rel=1e-9)
    assert run.metric("smooth_answers").mean == pytest.approx(100 * waits.count(0.0) / len(waits))


def test_latency_by_the_length_of_the_answer_is_the_engine_s(run):
    good = [(row, run.truth[row["request"]]) for row in succeeded(run)]
    each = [(row["last_ns"] - row["sent_ns"]) / 1e6 / truth.tokens for row, truth in good]
    same(run.metric("normalized_latency"), each)
    assert run.metric("total_output_tokens").mean == sum(truth.tokens for _, truth in good)
    assert run.metric("total_input_tokens").mean == sum(truth.prompt_tokens for _, truth in good)


def test_what_is_not_cut_ends_with_its_last_token(run):
    for row in succeeded(run):
        assert row["done_ns"] == row["last_ns"] == run.truth[row["request"]].last_sent_ns + run.way_ns


def test_what_is_cut_or_cancelled_has_the_tokens_until_then(run):
    ended = [row for row in run.rows if row["outcome"] in ("cut", "cancelled-as-planned")]
    assert (len(ended) > 0) == (run.name in ("cut", "cancelled"))
    for row in ended:
        truth = run.truth[row["request"]]
        assert truth.end == "closed" or truth.last_sent_ns > row["done_ns"] - run.way_ns
        assert all(at_ns <= row["done_ns"] + run.way_ns for at_ns in truth.sent_ns), (
            "the server hears of it then"
        )
        assert len(row["arrival_ns"]) <= truth.tokens <= 200


def test_the_requests_cut_off_are_in_the_censored_figures(run):
    ended = sum(row["outcome"] in ("cut", "cancelled-as-planned") for row in run.rows)
    assert run.metric("request_latency").cut_off == ended
    assert run.metric("request_latency").censored == ended


def test_nobody_is_late(run):
    lag = run.metric("send_lag")
    assert lag.max in (0, None)
    assert run.report.load.late in (0, None)


def test_goodput_counts_those_that_met_every_limit(simulate):
    run = simulate(
        "--osl 20 --osl-stddev 6 --request-rate 60 --request-count 120 --goodput 'ttft:6 request_latency:90'",
        **KEYS,
    )
    met = [
        truth.first_sent_ns - truth.received_ns <= 6e6 and truth.last_sent_ns - truth.received_ns <= 90e6
        for truth in run.truth.values()
    ]
    assert 0 < sum(met) < len(met)
    span_s = (
        max(truth.last_sent_ns for truth in run.truth.values())
        - min(truth.received_ns for truth in run.truth.values())
    ) / 1e9
    assert run.metric("goodput").mean == pytest.approx(sum(met) / span_s, rel=1e-12)


def test_the_engine_was_pressed(simulate):
    run = simulate(LOADS["preempted"], **KEYS, **OF_THE_ENGINE["preempted"])
    assert sum(truth.preemptions for truth in run.truth.values()) > 0


def area(spans, window):
    """The area under the number of spans that hold each moment of a window."""
    return sum(max(min(stop, window[1]) - max(start, window[0]), 0) for start, stop in spans)


def test_levels_over_time_are_the_engine_s(run):
    rows, good = sent(run), succeeded(run)
    window = (
        min(row["sent_ns"] for row in rows),
        max(row["done_ns"] if row in good else row["last_ns"] or row["sent_ns"] for row in rows),
    )
    arrivals = {row["request"]: came(run, row) for row in rows}
    lasted = window[1] - window[0]

    def mean(name):
        return run.metric(name).mean

    def of(amount):
        return pytest.approx(amount / lasted, rel=1e-9)

    prefills = [(row["sent_ns"], (arrivals[row["request"]] or [row["done_ns"]])[0]) for row in rows]
    decodes = [(own[0], own[-1]) for own in arrivals.values() if own]
    assert mean("concurrency") == of(area([(row["sent_ns"], row["done_ns"]) for row in rows], window))
    assert mean("effective_prefill_concurrency") == of(area(prefills, window))
    assert mean("effective_decode_concurrency") == of(area(decodes, window))
    output = sum(run.truth[row["request"]].tokens for row in good)
    prompts = sum(run.truth[row["request"]].prompt_tokens for row in good)
    assert mean("effective_decode_throughput") == of(output * 1e9)
    assert mean("effective_prefill_throughput") == of(prompts * 1e9)
    assert mean("effective_total_throughput") == of((prompts + output) * 1e9)
    assert mean("effective_total_throughput") == pytest.approx(mean("total_token_throughput"), rel=1e-9)
    held = sum(
        run.truth[row["request"]].prompt_tokens * (row["last_ns"] - row["sent_ns"])
        + sum(row["last_ns"] - at for at in arrivals[row["request"]])
        for row in good
    )
    if run.name != "speculative":  # its chunks share their answer's total evenly
        assert mean("tokens_in_flight") == of(held)


def test_peaks_are_the_engine_s(run):
    if run.name in ("speculative", "choices"):
        pytest.skip("a chunk has a share of its answer's tokens")
    rows = sent(run)
    moments = [row["sent_ns"] for row in rows]
    most = max(sum(row["sent_ns"] <= at < row["done_ns"] for row in rows) for at in moments)
    assert run.metric("peak_concurrency").mean == most
    tokens = sorted(at for row in succeeded(run) for at in came(run, row))
    if run.metric("benchmark_duration").mean < 1:
        assert run.metric("peak_output_token_throughput").reason == "the window is shorter than a second."
        return
    within = max(bisect_right(tokens, at) - bisect_right(tokens, at - 10**9) for at in tokens)
    assert run.metric("peak_output_token_throughput").mean == pytest.approx(within, rel=1e-9)
