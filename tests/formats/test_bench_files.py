"""The files of vllm bench serve and of SGLang's bench_serving, recomputed from the requests by those tools' formulas."""

from __future__ import annotations

import json

import numpy as np
import pytest

from loadstone.compare.importers import read
from loadstone.errors import LoadstoneError, UsageError
from loadstone.formats import named

# Of a file that vllm bench serve 0.32.0 wrote with --save-detailed; we know neither texts nor times in its own queue.
VLLM = {
    "date", "endpoint_type", "backend", "label", "model_id", "tokenizer_id", "num_prompts", "request_rate", "burstiness",
    "max_concurrency", "duration", "completed", "failed", "total_input_tokens", "total_output_tokens", "request_throughput",
    "request_goodput", "output_throughput", "total_token_throughput", "input_lens", "output_lens", "ttfts", "itls",
    "latencies", "start_times", "errors", "max_output_tokens_per_s", "max_concurrent_requests",
}  # fmt: skip
STATS = {f"{stat}_{name}_ms" for stat in ("mean", "median", "std", "p50", "p90", "p99") for name in ("ttft", "tpot", "itl", "e2el")}  # fmt: skip

# Of a line that SGLang's bench_serving 0.5.23 wrote with --output-details; texts and what its own server tells we do not know.
SGLANG = [
    "tag", "backend", "dataset_name", "request_rate", "max_concurrency", "random_input_len", "random_output_len",
    "random_range_ratio", "duration", "completed", "total_input_tokens", "total_input_text_tokens",
    "total_input_vision_tokens", "total_output_tokens", "total_output_tokens_retokenized", "request_throughput",
    "input_throughput", "output_throughput", "total_throughput",
    *(f"{stat}_{name}_ms" for name in ("e2e_latency", "ttft", "tpot", "itl") for stat in ("mean", "median", "std", "p90", "p95", "p99")),
    "concurrency", "max_output_tokens_per_s", "max_concurrent_requests", "input_lens", "output_lens", "ttfts", "itls", "errors",
]  # fmt: skip


@pytest.fixture(scope="module")
def vllm(report, home):
    return json.loads(named("vllm-json").text(report, home))


@pytest.fixture(scope="module")
def sglang(report, home):
    return json.loads(named("sglang-jsonl").text(report, home))


def test_it_has_the_fields_of_the_real_file(vllm):
    assert vllm.keys() >= VLLM | STATS


def test_every_request_adds_up(vllm):
    for ttft, gaps, latency, tokens in zip(
        *(vllm[name] for name in ("ttfts", "itls", "latencies", "output_lens")), strict=True
    ):
        assert ttft + sum(gaps) == pytest.approx(latency, abs=1e-9)
        assert len(gaps) == tokens - 1


def test_statistics_follow_from_the_lists(vllm):
    ttfts, latencies = np.array(vllm["ttfts"]), np.array(vllm["latencies"])
    gaps = np.concatenate(vllm["itls"])
    later = np.array(vllm["output_lens"]) - 1
    tpots = (latencies - ttfts)[later > 0] / later[later > 0]
    for name, values in (("ttft", ttfts), ("itl", gaps), ("tpot", tpots), ("e2el", latencies)):
        assert vllm[f"mean_{name}_ms"] == pytest.approx(1e3 * values.mean())
        assert vllm[f"p99_{name}_ms"] == pytest.approx(1e3 * np.percentile(values, 99))
        assert vllm[f"std_{name}_ms"] == pytest.approx(1e3 * values.std())
    assert vllm["output_throughput"] == pytest.approx(sum(vllm["output_lens"]) / vllm["duration"])


def test_peaks_are_counted_in_its_seconds(vllm):
    starts, latencies = np.array(vllm["start_times"]), np.array(vllm["latencies"])
    starts = starts - starts.min()
    seconds = range(int((starts + latencies).max()) + 1)
    touching = [
        sum(s < at + 1 and s + took >= at for s, took in zip(starts, latencies, strict=True))
        for at in seconds
    ]
    assert vllm["max_concurrent_requests"] == max(touching)


def test_sglang_has_the_fields_of_the_real_line_in_its_order(sglang):
    assert list(sglang) == [*SGLANG, "loadstone"]
    assert (sglang["random_input_len"], sglang["random_range_ratio"]) == (24, None)  # lengths varied


def test_sglang_has_the_same_numbers_under_its_names(vllm, sglang):
    assert sglang["completed"] == vllm["completed"] == 30
    for stat in ("mean", "median", "p99"):
        assert sglang[f"{stat}_ttft_ms"] == vllm[f"{stat}_ttft_ms"]
        assert sglang[f"{stat}_itl_ms"] == vllm[f"{stat}_itl_ms"]


def test_latencies_of_sglang_end_with_the_stream(sglang, rows):
    until_done = [(row["done_ns"] - row["sent_ns"]) / 1e9 for row in rows]
    assert sglang["mean_e2e_latency_ms"] == pytest.approx(1e3 * np.mean(until_done))
    assert sglang["concurrency"] == pytest.approx(sum(until_done) / sglang["duration"])
    later = np.array(sglang["output_lens"]) - 1
    tpots = (np.array(until_done) - sglang["ttfts"])[later > 0] / later[later > 0]
    assert sglang["mean_tpot_ms"] == pytest.approx(1e3 * tpots.mean())


@pytest.mark.parametrize(
    ("name", "model"), [("vllm-json", "vllm bench serve"), ("sglang-jsonl", "SGLang bench_serving")]
)
def test_what_is_written_is_read_as_that_tool_s(name, model, report, home, tmp_path):
    path = tmp_path / "file"
    path.write_text(named(name).text(report, home))
    run = read(path)
    assert run.tool == model
    assert run.numbers["time_to_first_token", "mean"].value == pytest.approx(
        report.metrics["time_to_first_token"].mean
    )


def test_a_list_of_requests_needs_the_folder(report):
    with pytest.raises(LoadstoneError, match="lists every request"):
        named("vllm-json").text(report, None)


def test_an_unknown_format_names_the_nearest():
    with pytest.raises(UsageError, match=r"Did you mean vllm-json\?"):
        named("vllm-jsn")
