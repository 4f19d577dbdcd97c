"""`requests.jsonl` and `inputs.json`, made from a run folder."""

from __future__ import annotations

import json
import math
import shutil
from pathlib import Path

import msgspec
import polars as pl
import pytest

from loadstone import folder as layout
from loadstone.export import inputs_json, requests_jsonl
from loadstone.plan.store import Draft, Writer
from loadstone.read.schema import REQUESTS
from loadstone.report import Report


def phase(name: str, first_row: int, planned: int, start_ns: int) -> layout.PhaseLog:
    facts = {"name": name, "kind": name, "first_row": first_row, "planned": planned}
    return msgspec.convert({**facts, "start_ns": start_ns, "stop_ns": 0, "end_ns": 0}, layout.PhaseLog)


@pytest.fixture
def run_folder(tmp_path: Path) -> Path:
    """A run of one warm-up request and two measured ones, with one body too many in the plan."""
    plan = Writer(tmp_path / layout.PLAN)
    bodies = (b'{"warm":1}', b'{"a":"\\u00e9"}', b'{"b":[2]}', b'{"never":"sent"}')
    plan.append(Draft(0, body, 1, 1, number, 0, 0) for number, body in enumerate(bodies))
    plan.close()
    run = layout.RunLog(
        id="r", command="c", loadstone_version="0", started="", end="complete", seed=1, config={},
        phases=[phase("warmup", 0, 1, 5_000_000), phase("measured", 1, 2, 10_000_000)],
        workers=[], clock=layout.ClockLog(kernel_stamps=True, steps=0),
        dataset=layout.DatasetLog(source="s", tokenizer="t", lengths_exact=True, unique_prompts=True, reused=0, digest=""),
        preflight=None, server_local=True, host_busy_share=None, environment={}, notices=[],
    )  # fmt: skip
    layout.write_run(tmp_path, run)
    return tmp_path


def table(folder: Path, rows: list[dict[str, object]]) -> None:
    pl.DataFrame(rows, schema=REQUESTS).write_parquet(folder / layout.REQUESTS)


def test_inputs_hold_every_planned_body_and_no_other(valid: Report, run_folder: Path) -> None:
    inputs_json.write(valid, run_folder)
    assert json.loads((run_folder / "inputs.json").read_bytes()) == {
        "data": [
            {"session_id": "session-000000", "payloads": [{"warm": 1}]},
            {"session_id": "session-000001", "payloads": [{"a": "é"}]},
            {"session_id": "session-000002", "payloads": [{"b": [2]}]},
        ]
    }


def test_the_turns_of_a_conversation_are_the_payloads_of_one_session(valid: Report, run_folder: Path) -> None:
    shutil.rmtree(run_folder / layout.PLAN)
    plan = Writer(run_folder / layout.PLAN)
    plan.append(Draft(0, b"{}", 1, 1, 7, turn, 0) for turn in range(3))
    plan.close()
    inputs_json.write(valid, run_folder)
    assert json.loads((run_folder / "inputs.json").read_bytes()) == {
        "data": [{"session_id": "session-000007", "payloads": [{}, {}, {}]}]
    }


def test_inputs_can_be_switched_off(valid: Report) -> None:
    off = msgspec.structs.replace(valid, config={"output": {"inputs_json": False}})
    assert (inputs_json.wanted(valid), inputs_json.wanted(off)) == (True, False)


def test_instants_are_also_told_since_the_measured_phase_began(valid: Report, run_folder: Path) -> None:
    table(
        run_folder,
        [{"request": 1, "due_ns": 10_000_000, "sent_ns": 14_548_517, "first_ns": None, "done_ns": 9_000_000}],
    )
    requests_jsonl.write(valid, run_folder)
    (line,) = (run_folder / "requests.jsonl").read_text().splitlines()
    row = json.loads(line)
    assert '"sent_ms":4.548517,' in line
    assert (row["due_ms"], row["sent_ms"], row["first_ms"], row["done_ms"]) == (0.0, 4.548517, None, -1.0)
    assert (row["sent_ns"], row["first_ns"]) == (14_548_517, None)


def test_a_request_has_every_column_but_the_lists(valid: Report, run_folder: Path) -> None:
    table(run_folder, [{"request": 1, "arrival_ns": [1, 2], "read_ns": [1, 2], "chunk_tokens": [1, 1]}])
    requests_jsonl.write(valid, run_folder)
    row = json.loads((run_folder / "requests.jsonl").read_text())
    instants = {f"{name}_ms" for name in requests_jsonl.INSTANTS}
    lists = {"arrival_ns", "read_ns", "chunk_tokens", "chunk_choice"}
    assert set(row) == set(REQUESTS) - lists | instants | {"phase_kind"}


def test_numbers_of_servers_and_models_are_told_as_names(valid: Report, run_folder: Path) -> None:
    requests = [(0, 1, "warmup"), (1, 0, "measured"), (None, None, "measured"), (7, 7, None)]
    table(run_folder, [{"request": 1, "target": t, "model": m, "phase": p} for t, m, p in requests])
    endpoint = {"url": ["http://a:1/v1", "http://b:2/v1"], "model": "large, small"}
    requests_jsonl.write(msgspec.structs.replace(valid, config={"endpoint": endpoint}), run_folder)
    rows = [json.loads(line) for line in (run_folder / "requests.jsonl").read_text().splitlines()]
    assert [(row["target"], row["model"], row["phase_kind"]) for row in rows] == [
        ("http://a:1/v1", "small", "warmup"),
        ("http://b:2/v1", "large", "measured"),
        (None, None, "measured"),
        (None, None, None),
    ]


def test_the_clock_begins_with_the_first_measured_phase() -> None:
    warm, ramp, hold = phase("warmup", 0, 1, 5), phase("measured", 1, 2, 10), phase("measured", 3, 2, 20)
    assert requests_jsonl.measured_start_ns([warm, ramp, hold]) == 10
    assert requests_jsonl.measured_start_ns([warm]) == 5
    assert requests_jsonl.measured_start_ns([]) == 0


def test_a_servers_words_stay_one_line_of_json(valid: Report, run_folder: Path) -> None:
    table(run_folder, [{"request": 1, "fault": 'a "quote"\n\x1b[2J\u2028 é'}])
    requests_jsonl.write(valid, run_folder)
    text = (run_folder / "requests.jsonl").read_bytes()
    assert text.count(b"\n") == 1 and b"\x1b" not in text
    assert json.loads(text)["fault"] == 'a "quote"\n\x1b[2J\u2028 é'


def test_hostile_words_stay_one_line_of_strict_json(hostile: str, valid: Report, run_folder: Path) -> None:
    table(run_folder, [{"request": 1, "fault": hostile, "finish_reason": hostile, "compressed": hostile}])
    requests_jsonl.write(valid, run_folder)
    raw = (run_folder / "requests.jsonl").read_bytes()
    assert raw.count(b"\n") == 1 and b"\x1b" not in raw
    row = json.loads(raw)
    assert (row["fault"], row["finish_reason"], row["compressed"]) == (hostile,) * 3


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_what_json_cannot_say_is_null(value: float, valid: Report, run_folder: Path) -> None:
    table(run_folder, [{"request": 1, "retry_after_s": value}])
    requests_jsonl.write(valid, run_folder)
    row = json.loads((run_folder / "requests.jsonl").read_text(), parse_constant=pytest.fail)
    assert row["retry_after_s"] is None


HOSTILE_BODIES = (
    b'{}]}, {"session_id": "x"}', b'{"a": NaN}', b'"\xff"', b'{"a":', b"\x1b[2J", b"[" * 300_000,
)  # fmt: skip


@pytest.mark.parametrize("body", HOSTILE_BODIES)
def test_a_body_that_is_no_json_is_a_text_in_the_inputs(body: bytes, valid: Report, run_folder: Path) -> None:
    shutil.rmtree(run_folder / layout.PLAN)
    plan = Writer(run_folder / layout.PLAN)
    plan.append(Draft(0, one, 1, 1, 7, turn, 0) for turn, one in enumerate((b'{"a":1}', body, b"[]")))
    plan.close()
    inputs_json.write(valid, run_folder)
    raw = (run_folder / "inputs.json").read_bytes()
    (session,) = json.loads(raw, parse_constant=pytest.fail)["data"]
    text = body.decode("utf-8", "backslashreplace")
    assert session == {"session_id": "session-000007", "payloads": [{"a": 1}, text, []]}
    assert b"\x1b" not in raw


def test_a_prompt_is_in_the_inputs_as_it_was_sent(hostile: str, valid: Report, run_folder: Path) -> None:
    shutil.rmtree(run_folder / layout.PLAN)
    plan = Writer(run_folder / layout.PLAN)
    plan.append([Draft(0, msgspec.json.encode({"prompt": hostile}), 1, 1, turn, 0, 0) for turn in range(3)])
    plan.close()
    inputs_json.write(valid, run_folder)
    raw = (run_folder / "inputs.json").read_bytes()
    assert [session["payloads"] for session in json.loads(raw)["data"]] == [[{"prompt": hostile}]] * 3
    assert b"\x1b" not in raw


def test_a_run_without_a_table_has_no_lines(valid: Report, run_folder: Path) -> None:
    requests_jsonl.write(valid, run_folder)
    assert (run_folder / "requests.jsonl").read_bytes() == b""
