"""The files of a run: each in its published form, and all of them telling the same."""

from __future__ import annotations

import csv
import json
import math
import re

import msgspec
import polars as pl
import pytest

from loadstone.config import Config, load
from loadstone.errors import Exit
from loadstone.metrics import names
from loadstone.read.schema import REQUESTS

LOAD = "--streaming --isl 16 --osl 4 --request-count 10 --concurrency 2"


@pytest.fixture(scope="module")
def run(good, engine):
    return good(f"--url {engine.url} {LOAD} --warmup-request-count 2 --extra-inputs ignore_eos:true")


@pytest.fixture(scope="module")
def raw(run):
    """`report.json` as any program reads it; NaN and Infinity are no JSON."""

    def refuse(token):
        raise ValueError(token)

    return json.loads((run.path / "report.json").read_text(), parse_constant=refuse)


def as_json(tree):
    return msgspec.json.decode(msgspec.json.encode(tree))


def numbers(tree):
    if isinstance(tree, dict):
        tree = list(tree.values())
    if isinstance(tree, list):
        return [number for branch in tree for number in numbers(branch)]
    return [tree] if isinstance(tree, float) else []


def test_the_report_is_strict_json_in_its_published_form(run, raw):
    assert raw["schema_version"] == "1.2"
    assert as_json(run.report) == raw
    assert len(numbers(raw)) > 200
    assert all(map(math.isfinite, numbers(raw)))


def test_every_metric_is_there_and_null_only_with_a_reason(raw):
    assert list(raw["metrics"]) == list(names())
    unknown = {name: metric for name, metric in raw["metrics"].items() if metric["mean"] is None}
    assert unknown.keys() >= {"goodput", "offered_rate", "queue_wait"}
    assert all(metric["reason"] and metric["count"] == 0 for metric in unknown.values())
    for name in ("time_to_first_token", "inter_token_latency", "request_latency", "output_token_throughput"):
        assert name not in unknown


def test_percentiles_are_in_order(raw):
    order = ("min", "p1", "p5", "p10", "p25", "p50", "p75", "p90", "p95", "p99", "p99_9", "max")
    spread = [
        [metric[stat] for stat in order] for metric in raw["metrics"].values() if metric["p50"] is not None
    ]
    assert len(spread) > 10
    assert spread == [sorted(values) for values in spread]


def test_outcomes_add_up(raw):
    assert raw["outcomes"]["planned"] == sum(raw["outcomes"]["counts"].values()) == 10
    assert sum(raw["series"]["sent"]) == sum(raw["series"]["completed"]) == 10


def test_the_files_listed_are_those_that_are_there(run, raw):
    listed = set(raw["run"]["files"].values())
    assert listed == {path.name for path in run.path.iterdir() if path.is_file()}
    assert {path.name for path in run.path.iterdir() if path.is_dir()} == {"plan"}


def test_the_table_of_numbers_is_tidy_and_tells_the_same(run, raw):
    with (run.path / "report.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert set(rows[0]) == {"metric", "unit", "stat", "value", "part"}
    assert len({(row["metric"], row["stat"], row["part"]) for row in rows}) == len(rows)
    windows = {window["name"] for window in raw["windows"] if window["reason"] is None}
    assert windows - {"steady"} == {"whole", "measured"}, "whether so short a run is steady is its own affair"
    parts = {"phase warmup", "phase measured"} | {f"window {name}" for name in windows - {"measured"}}
    assert {row["part"] for row in rows} == {"", *parts}
    told = {(row["metric"], row["stat"]): row["value"] for row in rows if not row["part"]}
    for name, metric in raw["metrics"].items():
        assert told[name, "count"] == str(metric["count"])
        for stat in ("mean", "p50", "p99_9"):
            if metric[stat] is not None:
                assert float(told[name, stat]) == metric[stat]
    assert told["goodput", "mean"] == ""


def test_there_is_one_row_a_request_in_both_tables(run):
    lines = [json.loads(line) for line in (run.path / "requests.jsonl").read_text().splitlines()]
    assert run.table.schema == pl.Schema(REQUESTS)
    assert [line["request"] for line in lines] == run.table["request"].to_list() == list(range(12))
    assert not any(isinstance(value, list) for line in lines for value in line.values())
    start_ns = run.measured.start_ns
    for line, row in zip(lines, run.table.to_dicts(), strict=True):
        assert line["sent_ns"] == row["sent_ns"]
        assert line["sent_ms"] == pytest.approx((row["sent_ns"] - start_ns) / 1e6, abs=1e-6)


def test_the_bodies_are_in_the_form_of_aiperf(run):
    data = json.loads((run.path / "inputs.json").read_text())["data"]
    assert [session["session_id"] for session in data] == [f"session-{i:06d}" for i in range(2)] + [
        f"session-{i:06d}" for i in range(10)
    ]
    assert [len(session["payloads"]) for session in data] == [1] * 12


def test_the_stored_configuration_is_the_one_that_ran(run):
    stored = load(run.path / "config.toml", {}, ())
    assert isinstance(stored, Config)
    assert as_json(stored) == run.report.config
    assert stored.load.concurrency == 2
    assert stored.input.seed == run.report.run.seed


def test_the_surroundings_are_told(run):
    told = run.report.environment
    assert told["server"]["server"].startswith("loadstone-sim/")
    assert told["dataset"]["digest"] == run.log.dataset.digest
    assert re.fullmatch(r"[0-9a-f]{64}", told["dataset"]["digest"])
    assert told["preflight"]["prompt_tokens"] == told["preflight"]["content_tokens"] + 4
    assert {"host", "cpu", "usable_cores", "python", "packages"} <= told.keys()


def test_without_a_folder_given_one_is_made_and_named(loadstone, engine, tmp_path):
    done = loadstone("profile", "--url", engine.url, *LOAD.split(), cwd=tmp_path)
    [folder] = (tmp_path / "artifacts").iterdir()
    assert re.fullmatch(r"sim-chat-concurrency2-\d{8}T\d{6}\.\d{3}", folder.name)
    assert f"files  artifacts/{folder.name}/" in done.out
    assert (folder / "report.json").exists()


def test_a_folder_may_have_any_name(loadstone, engine, tmp_path):
    words = ("profile", "--url", engine.url, *LOAD.split(), "--artifact-dir=~/a [7b] *")
    assert loadstone(*words, HOME=str(tmp_path)).code in (Exit.DONE, Exit.INVALID), (
        "a busy machine may speak against it"
    )
    folder = tmp_path / "a [7b] *"
    assert (folder / "report.json").exists()
    assert loadstone("report", str(folder)).code in (Exit.DONE, Exit.INVALID)


def test_the_bodies_are_left_out_on_request(good, engine):
    run = good(f"--url {engine.url} {LOAD} --no-inputs-json")
    assert not (run.path / "inputs.json").exists()
    assert "inputs" not in run.report.run.files


@pytest.fixture(scope="module")
def kept(good, scripted_for_all):
    """The folders of three runs against one server that fails one request, by what was kept."""

    def script(call, wire):
        if call.row == 2:
            wire.refuse("500 Internal Server Error", "no")
        else:
            wire.answer(call)

    server = scripted_for_all(script)
    words = f"--url {server.url} --model m --streaming --isl 16 --request-count 5"
    return {keep: good(f"{words} --keep {keep}").path for keep in ("none", "faults", "all")}


@pytest.mark.parametrize(("keep", "sample"), [("none", False), ("faults", True), ("all", True)])
def test_a_sample_of_a_fault_is_kept_unless_nothing_is(kept, keep, sample):
    assert (kept[keep] / "faults/http-server-error-1.http").exists() is sample


@pytest.mark.parametrize(("keep", "raw_bytes"), [("none", False), ("faults", False), ("all", True)])
def test_the_bytes_of_every_answer_are_kept_only_on_request(kept, keep, raw_bytes):
    segments = list(kept[keep].glob("recording/w*.dat"))
    assert bool(segments) is raw_bytes
    assert raw_bytes is (b"".join(file.read_bytes() for file in segments).count(b"data: [DONE]") == 4)
