"""Files of other tools become runs under our names; what counts otherwise does not get one."""

from __future__ import annotations

import numpy as np
import pytest
from tests.compare.conftest import AIPERF, SGLANG, VLLM, VLLM_DETAILS, aiperf_record, guidellm

from loadstone.compare.importers import read
from loadstone.compare.importers._pace import pace
from loadstone.compare.sides import SERVER
from loadstone.errors import UsageError


def values(run):
    return {f"{metric}.{stat}": known.value for (metric, stat), known in run.numbers.items()}


def test_a_summary_of_vllm_has_its_chunk_gaps_under_a_name_of_their_own(written):
    run = read(written("result.json", VLLM))
    assert values(run) == pytest.approx(
        {
            "time_to_first_token.mean": 30.0,
            "time_to_first_token.p50": 30.0,
            "time_to_first_token.p99": 39.8,
            "time_per_output_token.mean": 10.0,
            "inter_chunk_latency.mean": 12.0,
            "inter_chunk_latency.p50": 11.0,
            "request_throughput.mean": 1.0,
            "output_token_throughput.mean": 3.5,
            "total_token_throughput.mean": 103.5,
            "error_rate.mean": 100 / 3,
        }
    )
    assert run.requests is None
    assert run.asked["load"] == "poisson 5 requests/s, conditioned"
    assert run.asked["endpoint"] == "chat"
    assert run.asked.get("input_length") is None  # the file has what was counted, and not what was asked for
    assert run.asked["seed"] is None


def test_the_requests_of_vllm_are_known_with_its_details(written):
    requests = read(written("result.json", {**VLLM, **VLLM_DETAILS})).requests
    np.testing.assert_allclose(requests.sent_s, [0.0, 0.5, 1.0])
    np.testing.assert_allclose(requests.latencies["time_to_first_token"], [20, 40, np.nan])
    np.testing.assert_allclose(requests.latencies["request_latency"], [50, 70, np.nan])
    np.testing.assert_allclose(requests.latencies["time_per_output_token"], [10, 15, np.nan])
    assert requests.failed.tolist() == [False, False, True]
    assert requests.pooled["inter_chunk_latency"].owners.tolist() == [0, 0, 0, 1, 1]
    np.testing.assert_allclose(requests.pooled_sums["inter_chunk_latency"][0], [30, 30, 0])
    assert requests.keys is None


def test_a_run_of_vllm_without_a_success_is_no_run_of_zeros(written):
    path = written("result.json", {**VLLM, "completed": 0})
    with pytest.raises(UsageError, match=r"damaged: no request of it succeeded, so its numbers are zeros"):
        read(path)


@pytest.mark.parametrize("name", ["itls", "output_lens", "input_lens", "start_times", "errors"])
@pytest.mark.parametrize("count", [1, 4])
def test_lists_of_unequal_length_are_refused_and_no_request_is_dropped(written, name, count):
    entry = VLLM_DETAILS[name][:1]
    for file, summary in (("vllm.json", VLLM), ("sglang.jsonl", SGLANG)):
        if summary is SGLANG and name == "start_times":
            continue  # which it does not have
        path = written(file, {**summary, **VLLM_DETAILS, name: entry * count})
        sentence = f"{name} and ttfts are not of one length: {name} has {count} entries and ttfts 3"
        with pytest.raises(UsageError, match=sentence):
            read(path)


def test_the_last_run_of_a_file_of_sglang_is_read(written):
    run = read(written("out.jsonl", {**SGLANG, "mean_ttft_ms": 99.0}, SGLANG))
    assert run.numbers["time_to_first_token", "mean"].value == 30.0
    assert run.notes == ("the file holds 2 runs; the last one is compared.",)
    assert run.asked["load"] == "poisson 4 requests/s, unconditioned, at most 8 in flight"
    assert run.asked["output_length"] == "up to 128 tokens, from 0.5 of that"


def test_an_endless_rate_of_sglang_is_no_json_and_read_all_the_same(written):
    endless = {
        **SGLANG,
        "request_rate": float("inf"),
        "random_range_ratio": 1.0,
        "backend": "sglang-oai-chat",
    }
    path = written("out.jsonl", endless)
    assert '"request_rate": Infinity' in path.read_text()
    asked = read(path).asked
    assert (asked["load"], asked["endpoint"], asked["input_length"]) == (
        "concurrency 8",
        "chat",
        "1024 tokens",
    )


@pytest.mark.parametrize(
    ("backend", "name"), [("sglang", "inter_token_latency"), ("vllm", "inter_chunk_latency")]
)
def test_only_the_native_back_end_of_sglang_divides_gaps_by_tokens(written, backend, name):
    run = read(written("out.jsonl", {**SGLANG, "backend": backend}))
    assert run.numbers[name, "mean"].value == 12.0


def test_sglang_does_not_tell_when_requests_were_sent(written):
    run = read(
        written("out.jsonl", {**SGLANG, **{k: v for k, v in VLLM_DETAILS.items() if k != "start_times"}})
    )
    assert np.isnan(run.requests.sent_s).all()
    np.testing.assert_allclose(run.requests.latencies["request_latency"], [50, 70, np.nan])
    assert "inter_token_latency" in run.requests.pooled


def test_what_aiperf_calls_inter_token_latency_is_time_per_output_token(written):
    run = read(written("profile_export_aiperf.json", AIPERF))
    assert values(run) == {
        "time_to_first_token.mean": 30.0,
        "time_to_first_token.p50": 29.0,
        "time_to_first_token.p90": 38.0,
        "time_to_first_token.p99": 40.0,
        "time_per_output_token.mean": 10.0,
        "time_per_output_token.p50": 10.0,
        "inter_chunk_latency.mean": 11.0,
        "request_latency.mean": 60.0,
        "request_throughput.mean": 1.5,
        "output_token_throughput.mean": 3.5,
        "error_rate.mean": 25.0,
    }
    assert run.tool == "AIPerf 0.13.0"
    assert run.asked == {
        "model": "m",
        "endpoint": "chat",
        "streaming": True,
        "input_length": "550 tokens",
        "output_length": None,
        "load": "concurrency 4",
        "tokenizer": "t",
        "sampling": "ignore_eos=True",
        "requests": "100",
        "seed": 7,
        "dataset": None,
    }


def test_the_requests_of_aiperf_are_read_in_the_order_of_sending_without_the_warm_up(written):
    lines = [
        aiperf_record(0, phase="warmup", ttft=999.0),
        aiperf_record(2, ttft=22.0),
        aiperf_record(1, ttft=21.0),
        aiperf_record(3, error={"code": 500, "type": "E", "message": "m"}),
    ]
    requests = read(written("profile_export.jsonl", *lines)).requests
    np.testing.assert_allclose(requests.latencies["time_to_first_token"], [21, 22, np.nan])
    np.testing.assert_allclose(requests.latencies["time_per_output_token"], [20, 20, np.nan])
    np.testing.assert_allclose(requests.sent_s, [0.0, 0.1, 0.2])
    assert requests.failed.tolist() == [False, False, True]
    np.testing.assert_allclose(requests.pooled["inter_chunk_latency"].values, [10, 30, 10, 30])


def counted(number, **more):
    """A record of AIPerf whose answer is 5 tokens long by the server, and 3 by AIPerf's tokenizer."""
    record = aiperf_record(number, **more)
    if record["error"] is None:
        record["metrics"]["usage_completion_tokens"] = {"value": 5, "unit": "tokens"}
    return record


def test_tokens_of_aiperf_are_the_servers_where_it_told_them(written):
    lines = [counted(1), counted(2), counted(3, error={"code": 500})]
    run = read(written("profile_export.jsonl", *lines))
    assert run.counted_by == SERVER
    assert run.notes == (
        "output tokens of AIPerf are those that the server told, not those of AIPerf's own tokenizer.",
    )
    np.testing.assert_allclose(run.requests.output_tokens, [5, 5, np.nan])
    np.testing.assert_allclose(run.requests.latencies["time_per_output_token"], [10, 10, np.nan])


def test_tokens_of_aiperf_are_its_own_where_one_answer_has_no_count_of_the_server(written):
    run = read(written("profile_export.jsonl", counted(1), aiperf_record(2)))
    assert run.counted_by == "AIPerf's own tokenizer"
    np.testing.assert_allclose(run.requests.output_tokens, [3, 3])


@pytest.mark.parametrize(("told", "by"), [(7.0, SERVER), (5.0, "AIPerf's own tokenizer")])
def test_a_summary_of_aiperf_has_the_servers_tokens_where_both_sums_are_one(written, told, by):
    tokens = {"usage_completion_tokens": {"sum": told}, "output_sequence_length": {"sum": 7.0}}
    assert read(written("profile_export_aiperf.json", {**AIPERF, **tokens})).counted_by == by


def test_a_folder_of_aiperf_has_requests_from_one_file_and_what_was_asked_from_the_other(written, tmp_path):
    written("profile_export.jsonl", counted(1), counted(2))
    written("profile_export_aiperf.json", {**AIPERF, "is_complete": False, "incomplete_reason": "r"})
    run = read(tmp_path)
    assert (run.path, run.tool, len(run.requests.sent_s)) == (str(tmp_path), "AIPerf 0.13.0", 2)
    assert run.asked["model"] == "m"
    assert run.asked["requests"] == "100"
    assert run.notes[-1] == "AIPerf says it is incomplete: r."


def test_guidellm_has_the_prefill_in_its_time_per_output_token(written):
    run = read(written("benchmarks.json", guidellm()))
    found = values(run)
    assert found["time_per_output_token.mean"] == 10.0
    assert found["time_per_output_token_with_prefill.mean"] == 12.5
    assert found["request_latency.mean"] == 500.0
    assert found["request_latency.p50"] == 400.0
    assert found["error_rate.mean"] == pytest.approx(100 / 3)
    assert "total_token_throughput.mean" not in found
    assert run.tool == "GuideLLM 0.8.1"
    assert run.asked["load"] == "constant 5 requests/s"


def test_the_requests_of_guidellm_are_known_where_it_kept_all(written):
    told = guidellm()
    requests = read(written("a.json", told)).requests
    np.testing.assert_allclose(requests.latencies["request_latency"], [500, 500, np.nan])
    np.testing.assert_allclose(requests.sent_s, [0, 1, 3])
    told["benchmarks"][0]["requests"]["successful"].pop()
    assert read(written("b.json", told)).requests is None


def test_several_loads_in_one_report_of_guidellm_are_not_guessed_between(written):
    with pytest.raises(UsageError, match="it has 3 benchmarks, one for each load"):
        read(written("benchmarks.json", guidellm(benchmarks=3)))


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "is empty"),
        ("{", "line 1 is no JSON"),
        ("[1, 2]", "is in none of the formats that compare reads"),
        ('{"a": 1}', "is in none of the formats that compare reads"),
    ],
)
def test_a_file_that_is_nothing_is_one_sentence(tmp_path, text, sentence):
    path = tmp_path / "x.json"
    path.write_text(text)
    with pytest.raises(UsageError, match=sentence):
        read(path)


@pytest.mark.parametrize(
    "damaged",
    [
        {**VLLM, "completed": "two"},
        {**VLLM, **VLLM_DETAILS, "ttfts": 7},
        {**VLLM, **VLLM_DETAILS, "itls": [1, 2, 3]},
        {**AIPERF, "time_to_first_token": 5},
        {**AIPERF, "input_config": {"endpoint": 5}},
        {"metadata": {"request_start_ns": None}, "metrics": {}},
        {"benchmarks": [{"metrics": {"request_latency": {"successful": {"count": 1}}}}]},
        {"schema_version": "1.2", "loadstone_version": "1", "certificate": {}, "metrics": {}},
    ],
)
def test_a_damaged_file_is_one_sentence(written, damaged):
    with pytest.raises(UsageError, match="damaged"):
        read(written("x.json", damaged))


def test_what_is_not_there_is_one_sentence(tmp_path):
    with pytest.raises(UsageError, match="cannot be read: No such file or directory"):
        read(tmp_path / "nothing.json")
    with pytest.raises(UsageError, match="holds neither a run of loadstone nor an export"):
        read(tmp_path)


def test_a_loop_is_closed_where_every_send_takes_the_last_slot():
    took = np.array([1.0, 1.5, 2.0, 0.5] * 10)
    ended = np.cumsum(took)
    closed = pace(ended - took, ended)
    assert closed.by_ends
    assert closed.spent == pytest.approx(took)
    clocked = pace(np.arange(40.0), np.arange(40.0) + took)
    assert not clocked.by_ends
    assert clocked.spent.sum() == pytest.approx(40.0)


def test_without_every_send_there_is_no_pace():
    assert pace(np.array([0.0, np.nan]), np.ones(2)) is None
