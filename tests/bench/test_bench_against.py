"""What the truth of a run is, by how much a program is off, and the page that shows both."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from bench.against import Side, middle, page
from bench.against.figures import FIGURES, Request, errors, key, told, truth
from bench.client import Run

from loadstone.sim.truth import TruthRow

MS = 1_000_000


def row(name: str, received_ms: float, *sent_ms: float, end: str = "length") -> TruthRow:
    sent = [int(one * MS) for one in sent_ms]
    return TruthRow(
        request_id=name, received_ns=int(received_ms * MS), read_ns=int(received_ms * MS), first_sent_ns=sent[0],
        last_sent_ns=sent[-1], sent_ns=sent, prompt_tokens=5, tokens=len(sent), end=end,  # type: ignore[arg-type]
    )  # fmt: skip


ROWS = [row("a", 0, 10, 20, 40), row("b", 5, 30, 45)]


def test_the_truth_is_counted_from_the_request_s_last_packet_to_the_sends():
    found = truth(ROWS)
    assert found["time_to_first_token.mean"] == pytest.approx((10 + 25) / 2)
    assert found["inter_token_latency.mean"] == pytest.approx((10 + 20 + 15) / 3)
    assert found["time_per_output_token.mean"] == pytest.approx((15 + 15) / 2)
    assert found["request_latency.p50"] == 40
    assert found["benchmark_duration.mean"] == pytest.approx(0.045)
    assert found["output_token_throughput.mean"] == pytest.approx(5 / 0.045)
    assert found["concurrency.mean"] == pytest.approx(80 / 45)
    assert (found["peak_concurrency.mean"], found["peak_output_token_throughput.mean"]) == (2, 5)
    assert (found["total_input_tokens.mean"], found["error_rate.mean"]) == (10, 0)


def test_every_figure_has_a_truth():
    assert set(truth(ROWS)) == {key(one) for one in FIGURES}


def test_one_that_follows_at_once_is_not_in_flight_with_the_one_before():
    assert truth([row("a", 0, 10, 20), row("b", 20, 25, 30)])["peak_concurrency.mean"] == 1


def test_a_program_is_off_by_what_its_time_is_longer():
    found = errors({"a": Request(11, 43, 3), "b": Request(26, 41, 2)}, ROWS)
    assert found["time_to_first_token.p50"] == pytest.approx(1)
    assert found["request_latency.p99"] == pytest.approx(1 + 0.99 * 2)


def test_aiperf_and_vllm_are_read_by_their_own_names(tmp_path: Path):
    aiperf, vllm = tmp_path / "aiperf", tmp_path / "vllm-0"
    aiperf.mkdir()
    vllm.mkdir()
    summary = {"inter_token_latency": {"avg": 7.0}, "effective_decode_throughput": {"max": 16734.9}}
    (aiperf / "profile_export_aiperf.json").write_text(json.dumps(summary))
    metrics = {
        "time_to_first_token": {"value": 20.5},
        "request_latency": {"value": 304.5},
        "output_sequence_length": {"value": 33},
    }
    record = {"metadata": {"x_request_id": "x"}, "metrics": metrics}
    (aiperf / "profile_export.jsonl").write_text(json.dumps(record) + "\n")
    result = {
        "mean_tpot_ms": 10.0, "max_concurrent_requests": 20, "failed": 1, "completed": 3,
        "ttfts": [0.02], "latencies": [0.2], "output_lens": [24],
    }  # fmt: skip
    (vllm / "result.json").write_text(json.dumps(result))

    found = told("AIPerf", run(aiperf))
    assert found.figures == {"time_per_output_token.mean": 7.0, "peak_output_token_throughput.mean": 16734.9}
    assert found.requests == {"x": Request(20.5, 304.5, 33)}
    found = told("vllm bench serve", run(vllm))
    assert found.figures == {
        "time_per_output_token.mean": 10.0, "peak_concurrency.mean": 20, "error_rate.mean": 25.0,
    }  # fmt: skip
    assert found.requests == {"vllm-0-0": Request(20.0, 200.0, 24)}


def run(folder: Path) -> Run:
    return Run(folder, 0.0, 0.0, 0, 1, ())


def test_a_figure_that_a_program_does_not_tell_is_a_dash():
    assert middle([]) is None
    table = page.situation({tool: Side() for tool in ("AIPerf", "vllm bench serve", "loadstone")})
    assert table.splitlines()[0] == "|  | AIPerf | vllm bench serve | loadstone |"
    assert "| `concurrency`, requests | - | - | - |" in table


def test_the_kept_measurement_is_of_every_situation_and_its_truth_is_near_what_loadstone_says():
    found = page.kept()
    for sides in found.situations.values():
        assert {len(side.wall_s) > 0 for side in sides.values()} == {True}
        ours = sides["loadstone"]
        if ours.truth:
            for name in ("request_latency.p50", "output_token_throughput.mean", "total_output_tokens.mean"):
                assert middle(ours.told[name]) == pytest.approx(middle(ours.truth[name]), rel=0.02)
