"""AIPerf's files: the fields that the real tool writes, and numbers that are ours under its names."""

from __future__ import annotations

import csv
import json

import pytest

from loadstone.formats import named
from loadstone.formats._aiperf import DISTRIBUTIONS, NUMBERS
from loadstone.metrics import names

# Of a file that AIPerf 0.13.0 wrote, profiling a chat endpoint with --goodput.
REQUEST_LATENCY = ["unit", "avg", "p1", "p5", "p10", "p25", "p50", "p75", "p90", "p95", "p99", "min", "max", "std", "count", "sum"]  # fmt: skip
CONCURRENCY = ["unit", "avg", "p50", "p90", "p95", "p99", "min", "max", "std"]
TOP = {"schema_version", "benchmark_id", "input_config", "run_info", "was_cancelled", "is_complete", "error_summary", "start_time"}  # fmt: skip
CSV_HEAD = "Metric,avg,min,max,sum,p1,p5,p10,p25,p50,p75,p90,p95,p99,std"


@pytest.fixture(scope="module")
def told(report, home):
    return json.loads(named("aiperf-json").text(report, home))


def test_every_metric_it_takes_is_one_of_ours():
    assert {tag.ours for tag in (*DISTRIBUTIONS, *NUMBERS)} <= set(names())


def test_the_facts_of_the_run_stand_beside_the_metrics(told):
    assert told.keys() >= TOP
    assert (told["schema_version"], told["is_complete"], told["was_cancelled"]) == ("1.4", True, False)


def test_a_distribution_has_the_fields_of_the_real_file(told):
    assert list(told["request_latency"]) == REQUEST_LATENCY
    assert list(told["effective_concurrency"]) == CONCURRENCY
    assert list(told["request_throughput"]) == ["unit", "avg"]


def test_the_numbers_are_those_of_the_report(told, report):
    latency = report.metrics["request_latency"]
    assert told["request_latency"]["p99"] == latency.p99
    assert told["request_latency"]["sum"] == latency.mean * latency.count
    assert told["request_latency"]["count"] == 30
    assert told["goodput"]["avg"] == report.metrics["goodput"].mean


def test_its_inter_token_latency_is_the_mean_gap_of_a_request(told, report):
    assert told["inter_token_latency"]["avg"] == report.metrics["time_per_output_token"].mean
    assert told["inter_token_latency"]["avg"] != report.metrics["inter_token_latency"].mean


def test_what_is_not_known_is_left_out(told):
    assert "reasoning_token_count" not in told
    assert "inter_chunk_latency" not in told


def test_what_it_counts_otherwise_is_left_out(told, report):
    assert report.metrics["request_latency_from_due"].mean is not None
    assert report.metrics["http_req_sending"].mean is not None
    assert not any(
        name.startswith(("http_", "effective_latency", "effective_decode_throughput")) for name in told
    )


def test_a_share_is_one_of_1(told, report):
    assert told["good_request_fraction"]["avg"] == report.metrics["goodput_attainment"].mean / 100


def test_what_was_asked_has_its_shape(told):
    config = told["input_config"]
    assert list(config) == ["models", "endpoint", "datasets", "phases", "tokenizer"]
    assert config["phases"] == [
        {"name": "profiling", "kind": "profiling", "type": "poisson", "requests": 30, "rate": 20.0}
    ]
    assert config["datasets"][0]["random_seed"] == 7
    assert config["datasets"][0]["prompts"] == {
        "isl": {"mean": 24.0, "stddev": 0.0},
        "osl": {"mean": 12.0, "stddev": 3.0},
    }


def test_the_csv_has_two_tables_with_two_decimals(report, home, told):
    first, second, *rest = named("aiperf-csv").text(report, home).split("\n\n")
    assert rest == []
    assert first.splitlines()[0] == CSV_HEAD
    rows = {row["Metric"]: row for row in csv.DictReader(first.splitlines())}
    assert rows["Request Latency (ms)"]["p99"] == f"{told['request_latency']['p99']:.2f}"
    assert rows["Effective Concurrency"]["sum"] == ""
    numbers = dict(csv.reader(second.splitlines()))
    assert numbers["Request Count"] == "30.00"
    assert numbers["Goodput (requests/sec)"] == f"{told['goodput']['avg']:.2f}"
